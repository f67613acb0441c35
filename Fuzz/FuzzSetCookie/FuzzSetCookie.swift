// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire

/// For any `Set-Cookie`, no cookie is sent to a host that it is not for, and nothing is injected into the `Cookie` field.
///
/// The input consists of a host that sets cookies, a line break, and one line of joined field values for each response.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzSetCookie(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let octets = Array(UnsafeBufferPointer(start: data, count: size))
    let text = OctetText.text(of: octets[...])
    precondition(OctetText.octets(of: text) == octets, "octets were lost")
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let host = String(lines.first ?? "")
    let hosts =
        ["a.com", "www.a.com", "b.a.com", "127.0.0.1", "a.co.uk", "github.io"] + (host.isEmpty ? [] : [host.lowercased()])
    var jar = CookieJar()
    var copy = CookieJar()
    for (number, line) in lines.dropFirst().enumerated() {
        let setter = hosts[(hosts.count - 1 + number) % hosts.count]
        let request = CookieRequest(
            host: setter,
            path: "/a/b",
            isSecure: number % 2 == 0,
            partition: number % 3 == 0 ? "p" : nil
        )
        let fields = SetCookie.split(String(line))
        let letters = fields.reduce(0) { $0 + $1.utf8.filter { $0 > 0x20 && $0 != UInt8(ascii: ",") }.count }
        precondition(letters == line.utf8.filter { $0 > 0x20 && $0 != UInt8(ascii: ",") }.count, "splitting lost something")
        copy.apply(jar.store(fields, from: request, policy: .always, now: Double(number)))
        // Also store the value that was not split.
        copy.apply(jar.store([String(line)], from: request, policy: .always, now: Double(number)))
    }
    let now = Double(lines.count)
    for host in hosts {
        for isSecure in [true, false] {
            let request = CookieRequest(host: host, path: "/a/b/c", isSecure: isSecure)
            let cookies = jar.cookies(for: request, now: now)
            for cookie in cookies {
                precondition(cookie.matches(domain: host) && cookie.matches(path: "/a/b/c"), "\(cookie) for \(host)")
                precondition(
                    host == cookie.domain || host.utf8.elementsEqual(cookie.domain.utf8) || isBelow(host, cookie), "\(host)")
                precondition(isSecure || !cookie.isSecure, "\(cookie) sent in the clear")
                precondition(cookie.isHostOnly || !PublicSuffixList.isPublicSuffix(cookie.domain), "\(cookie) of a public suffix")
                precondition(
                    OctetText.octets(of: cookie.name).count + OctetText.octets(of: cookie.value).count <= CookieJar.maximumBytes,
                    "too long")
            }
            let header = jar.header(for: request, now: now)
            precondition((header == nil) == cookies.isEmpty, "\(header ?? "-") for \(cookies)")
            precondition(header?.utf8.contains { $0 == 0x0D || $0 == 0x0A || $0 == 0 } != true, "smuggled")
            let separators = header?.utf8.count { $0 == UInt8(ascii: ";") } ?? 0
            precondition(separators == max(cookies.count - 1, 0), "wrong number of cookies: \(header ?? "-")")
        }
    }
    precondition(Set(copy.all.map(\.key)) == Set(jar.all.map(\.key)), "the changes are incomplete")
    return 0
}

private func isBelow(_ host: String, _ cookie: Cookie) -> Bool {
    !cookie.isHostOnly && host.utf8.count > cookie.domain.utf8.count
        && host.utf8.suffix(cookie.domain.utf8.count + 1).elementsEqual(("." + cookie.domain).utf8)
}
