// SPDX-License-Identifier: Apache-2.0

package import HTTPRules

/// Encodes and decodes the cookies of a file, one record per cookie.
///
/// A checksum does not authenticate a file. Cookies that neither a server nor an app could have stored are therefore left out. This
/// type and the jar omit them when reading, and this type omits them when writing, so that both directions agree.
package enum CookieFile {
    static let envelope = StoreEnvelope(kind: "cookies", version: 1)
    /// The last access is rounded to the hour, so that sending cookies rarely changes the file.
    private static let accessStep = 3_600.0
    /// About 30,000 years: times within this limit can be computed in seconds without overflow.
    private static let timeLimit = 1e12

    package static func encode(_ cookies: [Cookie], now: Double) -> [UInt8] {
        var writer = RecordWriter()
        for cookie in cookies {
            guard let expires = cookie.expires, expires > now, isSound(cookie) else { continue }
            write(cookie, expires: expires, to: &writer)
        }
        return writer.bytes
    }

    package static func decode(_ file: [UInt8], from start: Int) -> [Cookie]? {
        file.withUnsafeBytes { bytes in
            var reader = RecordReader(bytes, from: start)
            var cookies: [Cookie] = []
            cookies.reserveCapacity(min(bytes.count / 100, CookieJar.maximumCount))
            while !reader.isAtEnd {
                guard let cookie = read(&reader) else { return nil }
                if isSound(cookie) { cookies.append(cookie) }
            }
            return cookies
        }
    }

    private static func write(_ cookie: Cookie, expires: Double, to writer: inout RecordWriter) {
        var flags: UInt8 = 0
        if cookie.isHostOnly { flags |= 1 }
        if cookie.isSecure { flags |= 2 }
        if cookie.isHTTPOnly { flags |= 4 }
        if cookie.isDiscarded { flags |= 8 }
        writer.write(flags)
        let sameSite: UInt8 =
            switch cookie.sameSite {
            case nil: 0
            case .some(.none): 1
            case .lax: 2
            case .strict: 3
            }
        writer.write(sameSite)
        writer.write(expires)
        writer.write(cookie.creation)
        writer.write(max(cookie.creation, (cookie.lastAccess / accessStep).rounded(.down) * accessStep))
        writer.write(cookie.name)
        writer.write(cookie.value)
        writer.write(cookie.domain)
        writer.write(cookie.path)
        writer.write(cookie.partition)
        writer.write(Int64(cookie.version))
        writer.write(cookie.comment)
        writer.write(cookie.commentURL)
        writer.write(UInt16(clamping: cookie.ports.count))
        for port in cookie.ports.prefix(Int(UInt16.max)) { writer.write(UInt16(clamping: port)) }
    }

    private static func read(_ reader: inout RecordReader) -> Cookie? {
        guard let flags = reader.number(UInt8.self), flags < 16, let sameSite = sameSite(reader.number(UInt8.self)),
            let expires = reader.double(), let creation = reader.double(), let lastAccess = reader.double(),
            let name = reader.text(), let value = reader.text(), let domain = reader.text(), let path = reader.text(),
            let partition = reader.optionalText(), let version = reader.number(Int64.self),
            let comment = reader.optionalText(), let commentURL = reader.optionalText(),
            let portCount = reader.number(UInt16.self)
        else { return nil }
        var ports: [Int] = []
        for _ in 0..<portCount {
            guard let port = reader.number(UInt16.self) else { return nil }
            ports.append(Int(port))
        }
        return Cookie(
            name: name,
            value: value,
            domain: domain,
            isHostOnly: flags & 1 != 0,
            path: path,
            expires: expires,
            creation: creation,
            lastAccess: lastAccess,
            isSecure: flags & 2 != 0,
            isHTTPOnly: flags & 4 != 0,
            sameSite: sameSite,
            partition: partition,
            version: Int(clamping: version),
            comment: comment,
            commentURL: commentURL,
            ports: ports,
            isDiscarded: flags & 8 != 0
        )
    }

    private static func sameSite(_ number: UInt8?) -> SetCookie.SameSite?? {
        switch number {
        case 0: .some(nil)
        case 1: .some(SetCookie.SameSite.none)
        case 2: .some(.lax)
        case 3: .some(.strict)
        default: nil
        }
    }

    /// Checks what the jar does not: the jar rejects characters that would break the `Cookie` field, and cookies that are too
    /// large.
    private static func isSound(_ cookie: Cookie) -> Bool {
        guard let expires = cookie.expires, isTime(expires), isTime(cookie.creation), isTime(cookie.lastAccess),
            let first = cookie.domain.utf8.first, first != UInt8(ascii: "."), cookie.domain.utf8.allSatisfy(isHostByte)
        else { return false }
        return cookie.ports.isEmpty || cookie.ports.allSatisfy { 0...65_535 ~= $0 }
    }

    private static func isTime(_ time: Double) -> Bool {
        abs(time) < timeLimit
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "/"), UInt8(ascii: "\\"), UInt8(ascii: "?"), UInt8(ascii: "#"),
            UInt8(ascii: "@"), UInt8(ascii: ";"), UInt8(ascii: "["), UInt8(ascii: "]"):
            false
        default: byte > 0x20 && byte < 0x7F
        }
    }
}
