// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A URL glob expands to a limited number of URLs.
///
/// All URLs have the same number of parts, and each URL contains its parts.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzAddressGlob(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    // Longer globs expand to more URLs, but reach no other code.
    let text = String(decoding: UnsafeBufferPointer(start: data, count: min(size, 256)), as: UTF8.self)
    do throws(ToolFailure) {
        let addresses = try AddressGlob(text).addresses()
        precondition(1...AddressGlob.most ~= addresses.count, "\(addresses.count) addresses")
        let count = addresses[0].parts.count
        for address in [addresses[0], addresses[addresses.count / 2], addresses[addresses.count - 1]] {
            precondition(address.parts.count == count, "a part is missing")
            var rest = address.text.utf8[...]
            for part in address.parts {
                guard let found = rest.firstRange(of: part.utf8) else { preconditionFailure("\(part) is not in \(address.text)") }
                rest = rest[found.upperBound...]
            }
        }
        let isPlain = !text.contains { "{}[]\\".contains($0) }
        precondition(!isPlain || addresses.count == 1 && addresses[0].text == text, "\(addresses[0].text)")
    } catch {
        precondition([2, 3].contains(error.code) && error.message?.isEmpty == false, "a failure without a reason")
    }
    return 0
}
