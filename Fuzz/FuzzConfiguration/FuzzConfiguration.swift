// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A line of a `--config` file has one option and at most one value, and means the same if the value is quoted.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzConfiguration(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let text = String(decoding: UnsafeBufferPointer(start: data, count: size), as: UTF8.self)
    for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
        guard let entry = ConfigurationFile.Entry(line) else {
            precondition(line.contains("\""), "a line without quotes was rejected")
            continue
        }
        guard let option = entry.option else {
            precondition(entry.value == nil && !entry.isCut, "a value without an option")
            continue
        }
        precondition(option.hasPrefix("-"), "\(option) is no option")
        guard let value = entry.value else { continue }
        let quoted = value.map { character in
            switch character {
            case "\"", "\\": "\\\(character)"
            case "\n": "\\n"
            case "\r": "\\r"
            default: String(character)
            }
        }.joined()
        let again = ConfigurationFile.Entry("\(option) \"\(quoted)\"")
        precondition(again?.option == option && again?.value == value && again?.isCut == false, "\(value) is read otherwise")
    }
    return 0
}
