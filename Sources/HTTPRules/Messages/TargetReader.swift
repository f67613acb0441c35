// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Parses the text of a URL for ``RequestTarget``, without copying it.
struct TargetReader {
    typealias Malformed = RequestTarget.Malformed

    let bytes: UnsafeBufferPointer<UInt8>
    private var position = 0

    init(bytes: UnsafeBufferPointer<UInt8>) {
        self.bytes = bytes
    }

    mutating func read() throws(Malformed) -> RequestTarget {
        let (isSecure, isWebSocket) = try readScheme()
        // The authority ends at the first "/", "?" or "#" (RFC 3986, section 3.2).
        let start = position
        var separator: Int?
        scan: while position < bytes.count {
            let byte = bytes[position]
            switch byte {
            case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"):
                break scan
            case UInt8(ascii: "@"):
                // With a second "@", URL parsers disagree about the host.
                guard separator == nil else { throw .badHost }
                separator = position
            default:
                guard Self.isAllowed(byte) else { throw .forbiddenCharacter }
            }
            position += 1
        }
        let hostStart = separator.map { $0 + 1 } ?? start
        let host = try readHost(hostStart..<position, isSecure: isSecure)
        let path = try readPath()
        var user: String?
        var password: String?
        if let separator { (user, password) = readUserInformation(start..<separator) }
        return RequestTarget(
            origin: host.origin, path: path, hostHeader: host.field, user: user, password: password, isWebSocket: isWebSocket)
    }

    /// Whether a byte may appear in a URL.
    ///
    /// Foundation rejects all other bytes, but text from other sources may contain them.
    private static func isAllowed(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "\\")
    }

    /// Reads `http://` or `https://`, or the WebSocket schemes `ws://` or `wss://` (RFC 6455, section 3).
    private mutating func readScheme() throws(Malformed) -> (isSecure: Bool, isWebSocket: Bool) {
        var isSecure = false
        let isWebSocket = !skipIfPresent("http")
        if isWebSocket { guard skipIfPresent("ws") else { throw .unsupportedScheme } }
        if position < bytes.count, ASCII.lowercased(bytes[position]) == UInt8(ascii: "s") {
            isSecure = true
            position += 1
        }
        guard skipIfPresent(":") else { throw .unsupportedScheme }
        guard skipIfPresent("//") else { throw .missingHost }
        return (isSecure, isWebSocket)
    }

    private mutating func skipIfPresent(_ expected: StaticString) -> Bool {
        let count = expected.utf8CodeUnitCount
        guard bytes.count - position >= count else { return false }
        for offset in 0..<count where ASCII.lowercased(bytes[position + offset]) != expected.utf8Start[offset] {
            return false
        }
        position += count
        return true
    }

    // MARK: Host and port

    private func readHost(_ range: Range<Int>, isSecure: Bool) throws(Malformed) -> (origin: Origin, field: String) {
        guard !range.isEmpty else { throw .missingHost }
        let isLiteral = bytes[range.lowerBound] == UInt8(ascii: "[")
        let name = isLiteral ? try literal(range) : try registeredName(range)
        let end = isLiteral ? name.upperBound + 1 : name.upperBound
        let standard = isSecure ? 443 : 80
        let port = try readPort(end..<range.upperBound) ?? standard
        var host = lowercased(name)
        var field = host
        if isLiteral {
            // The zone is only meaningful on this machine. The zone is kept for the connection and not sent.
            if let zone = host.utf8.firstIndex(of: UInt8(ascii: "%")) {
                field = "[" + host[..<zone] + "]"
                host = PercentEncoding.decoded(host)
            } else {
                field = "[" + host + "]"
            }
        }
        if port != standard { field += ":" + String(port) }
        return (Origin(scheme: isSecure ? "https" : "http", host: host, port: port), field)
    }

    /// Returns the range of a name or an IPv4 address.
    ///
    /// Percent-encoding is rejected: the decoded name would differ from the name that is looked up.
    private func registeredName(_ range: Range<Int>) throws(Malformed) -> Range<Int> {
        var end = range.lowerBound
        while end < range.upperBound, bytes[end] != UInt8(ascii: ":") {
            guard Self.isNameCharacter(bytes[end]) else { throw .badHost }
            end += 1
        }
        guard end > range.lowerBound else { throw .missingHost }
        return range.lowerBound..<end
    }

    /// Whether a byte is in `unreserved` or in `sub-delims` (RFC 3986, section 3.2.2).
    private static func isNameCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "!"), UInt8(ascii: "$"),
            UInt8(ascii: "&")...UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "="):
            true
        default: false
        }
    }

    /// Returns the range of an IPv6 address between its brackets, including its zone (RFC 6874: after `%25`).
    private func literal(_ range: Range<Int>) throws(Malformed) -> Range<Int> {
        guard let close = bytes[range].firstIndex(of: UInt8(ascii: "]")) else { throw .badHost }
        let inside = range.lowerBound + 1..<close
        var colons = 0
        var index = inside.lowerBound
        while index < inside.upperBound, bytes[index] != UInt8(ascii: "%") {
            switch bytes[index] {
            case UInt8(ascii: ":"): colons += 1
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
                UInt8(ascii: "A")...UInt8(ascii: "F"),
                UInt8(ascii: "."):
                break
            default: throw .badHost
            }
            index += 1
        }
        guard colons >= 2 else { throw .badHost }
        guard index < inside.upperBound else { return inside }
        let zone = index + 3
        guard zone < inside.upperBound, bytes[index + 1] == UInt8(ascii: "2"), bytes[index + 2] == UInt8(ascii: "5"),
            bytes[zone..<inside.upperBound].allSatisfy(Self.isNameCharacter)
        else { throw .badHost }
        return inside
    }

    /// Returns the port after the host, or nil if the port is absent: `http://h:/` equals `http://h/` (RFC 3986, section 3.2.3).
    private func readPort(_ range: Range<Int>) throws(Malformed) -> Int? {
        guard let first = range.first else { return nil }
        guard bytes[first] == UInt8(ascii: ":") else { throw .badHost }
        guard range.count > 1 else { return nil }
        guard let port = ASCII.number(bytes[range.dropFirst()]), 1...65_535 ~= port else { throw .badPort }
        return Int(port)
    }

    private func lowercased(_ range: Range<Int>) -> String {
        String(unsafeUninitializedCapacity: range.count) { buffer in
            for (offset, byte) in bytes[range].enumerated() { buffer[offset] = ASCII.lowercased(byte) }
            return range.count
        }
    }

    // MARK: Path and userinfo

    private mutating func readPath() throws(Malformed) -> String {
        let start = position
        while position < bytes.count, bytes[position] != UInt8(ascii: "#") {
            guard Self.isAllowed(bytes[position]) else { throw .forbiddenCharacter }
            position += 1
        }
        let end = position
        while position < bytes.count {
            guard Self.isAllowed(bytes[position]) else { throw .forbiddenCharacter }
            position += 1
        }
        guard start < end else { return "/" }
        let path = String(decoding: bytes[start..<end], as: UTF8.self)
        // RFC 9112, section 3.2.1: an empty path is sent as "/", even before a query.
        return bytes[start] == UInt8(ascii: "/") ? path : "/" + path
    }

    private func readUserInformation(_ range: Range<Int>) -> (user: String?, password: String?) {
        let colon = bytes[range].firstIndex(of: UInt8(ascii: ":")) ?? range.upperBound
        let user = PercentEncoding.decoded(String(decoding: bytes[range.lowerBound..<colon], as: UTF8.self))
        guard colon < range.upperBound else { return (user.isEmpty ? nil : user, nil) }
        let password = PercentEncoding.decoded(String(decoding: bytes[colon + 1..<range.upperBound], as: UTF8.self))
        return user.isEmpty && password.isEmpty ? (nil, nil) : (user, password)
    }
}
