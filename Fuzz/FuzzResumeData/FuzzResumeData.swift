// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire

/// Resume data is either rejected, or contains a file name, an HTTP URL and valid fields, and is the same after it is written and
/// read again.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzResumeData(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let input = Data(UnsafeBufferPointer(start: data, count: size))
    // Also decode the input with a valid checksum, so that the fuzzer reaches the parser behind the check.
    for candidate in [input, input + Data(ResumePoint.seal(input).utf8)] {
        guard let point = try? ResumePoint(decoding: candidate) else { continue }
        precondition(ResumePoint.isFileName(point.temporaryFileName), "file \(point.temporaryFileName)")
        precondition(Origin(point.url) != nil && Origin(point.originalURL) != nil, "URL \(point.url)")
        for (name, value) in ResumeDecision.requestFields(for: point) + point.headers.fields.map({ ($0.name, $0.value) }) {
            precondition(ASCII.isToken(name) && ASCII.isFieldValue(value), "field \(name)")
        }
        guard let again = try? ResumePoint(decoding: point.encoded()) else {
            preconditionFailure("written resume data cannot be read")
        }
        precondition(again == point, "changed by writing and reading")
    }
    return 0
}
