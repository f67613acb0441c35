// SPDX-License-Identifier: Apache-2.0

import HTTPRules

/// The cookies read from a `cookies.txt` can be written, and are the same after they are read again.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzCookieFile(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let text = String(decoding: UnsafeBufferPointer(start: data, count: size), as: UTF8.self)
    let cookies = NetscapeCookieFile.parse(text, now: 0)
    let written = NetscapeCookieFile.text(cookies)
    let again = NetscapeCookieFile.parse(written, now: 0)
    precondition(again.count <= cookies.count, "more cookies than before")
    precondition(NetscapeCookieFile.text(again) == written, "written differently: \(written)")
    // Only a cookie whose domain would be read as a comment cannot be written.
    precondition(again == cookies.filter { $0.domain.utf8.first != UInt8(ascii: "#") }, "\(again) is not \(cookies)")
    var jar = CookieJar(cookies)
    for cookie in cookies {
        let request = CookieRequest(host: cookie.domain, path: cookie.path, isSecure: true)
        let header = jar.header(for: request, now: 0)
        precondition(header?.utf8.contains { $0 == 0x0D || $0 == 0x0A || $0 == 0 } != true, "smuggled")
    }
    precondition(jar.count <= CookieJar.maximumCount, "too many")
    return 0
}
