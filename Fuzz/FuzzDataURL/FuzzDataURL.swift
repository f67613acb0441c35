// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire

/// A `data:` URL has a valid type, and decodes to at most as many bytes as the URL has.
///
/// Base64 content is decoded unchanged.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzDataURL(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let input = UnsafeBufferPointer(start: data, count: size)
    let text = String(decoding: input, as: UTF8.self)
    for url in [text, "data:" + text, "data:;base64," + text] {
        guard let decoded = DataURL(url) else { continue }
        precondition(decoded.bytes.count <= url.utf8.count, "more bytes than in the URL")
        let parts = decoded.mimeType.split(separator: "/", omittingEmptySubsequences: false)
        precondition(parts.count == 2 && parts.allSatisfy { ASCII.isToken(String($0)) }, "type \(decoded.mimeType)")
    }
    guard let round = DataURL("data:;base64," + Data(input).base64EncodedString()) else {
        preconditionFailure("base64 was rejected")
    }
    precondition(round.bytes.elementsEqual(input), "base64 content changed")
    return 0
}
