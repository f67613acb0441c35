// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import LoadingStores

/// Loading the file of a cookie store never traps.
///
/// No loaded cookie breaks out of the `Cookie` field or is sent to another site, and all loaded cookies are the same after they
/// are written and read again.
///
/// The input is used as a whole file, and also as the content after a valid first line, so that the checksum does not stop the
/// fuzzer.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzCookieStoreFile(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: size))
    for kind in ["cookies", "hsts"] {
        let envelope = StoreEnvelope(kind: kind, version: 1)
        if case .whole(_, let start) = envelope.open(bytes) { check(bytes, from: start) }
    }
    check(bytes, from: 0)
    return 0
}

private func check(_ bytes: [UInt8], from start: Int) {
    checkHosts(bytes, from: start)
    guard let kept = CookieFile.decode(bytes, from: start) else { return }
    var jar = CookieJar(kept)
    let cookies = jar.all
    for cookie in cookies {
        precondition(cookie.expires?.isFinite == true, "\(cookie) never expires")
        for text in [cookie.name, cookie.value, cookie.path, cookie.domain] {
            precondition(!text.utf8.contains { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }, "control character in \(cookie)")
        }
        precondition(!cookie.name.utf8.contains(UInt8(ascii: ";")), "a second cookie in \(cookie)")
        precondition(!cookie.value.utf8.contains(UInt8(ascii: ";")), "a second cookie in \(cookie)")
        let request = CookieRequest(host: cookie.domain, path: cookie.path, isSecure: true, partition: cookie.partition)
        for sent in jar.cookies(for: request, now: 0) {
            precondition(sent.matches(domain: cookie.domain), "\(sent) goes to \(cookie.domain)")
        }
        _ = jar.header(for: request, now: 0)
    }
    let written = CookieFile.encode(cookies, now: -.infinity)
    guard let again = CookieFile.decode(written, from: 0) else { preconditionFailure("unreadable: \(written)") }
    precondition(again.count == cookies.count, "lost: \(cookies)")
    precondition(CookieFile.encode(again, now: -.infinity) == written, "written differently: \(cookies)")
}

private func checkHosts(_ bytes: [UInt8], from start: Int) {
    guard let entries = HSTSFile.decode(bytes, from: start) else { return }
    for (host, entry) in HSTSList(entries).entries {
        precondition(HSTSList([host: entry]).requiresUpgrade(host: host, now: entry.expires - 1), "\(host) is not upgraded")
    }
    let written = HSTSFile.encode(entries, now: 0)
    guard let again = HSTSFile.decode(written, from: 0) else { preconditionFailure("unreadable: \(written)") }
    precondition(HSTSFile.encode(again, now: 0) == written, "written differently: \(entries)")
}
