// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules

/// For any name from a server, the suggested file name is one safe path component.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzContentDisposition(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let header = String(decoding: UnsafeBufferPointer(start: data, count: size), as: UTF8.self)
    let url = URL(string: "http://h/" + header)
    for (disposition, type) in [
        (header, nil), (header, "text/html"), ("attachment; filename*=UTF-8''" + header, header), (nil, "text/html"),
    ] {
        let name = SuggestedFilename.make(contentDisposition: disposition, url: url, mimeType: type)
        precondition((1...255).contains(name.utf8.count), "length of \(name)")
        precondition(
            name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "\\") }, name)
        precondition(name.utf8.first != UInt8(ascii: "."), "hidden or a directory: \(name)")
    }
    _ = MediaType(header)
    return 0
}
