// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import LoadingStores

/// A file in the cache is either rejected, or read as an entry that is the same after it is written and read again.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzCacheEntry(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let input = UnsafeRawBufferPointer(start: data, count: size)
    check(input)
    // Also use the input as a head with a valid preamble and checksums, so that the fuzzer reaches the parser of heads.
    guard size <= CacheEntryFile.headLimit else { return 0 }
    var file = preamble(headLength: size)
    let sum = (file + Array(input)).withUnsafeBytes { ContentChecksum.of($0) }
    append(sum, to: &file)
    file += Array(input)
    file.withUnsafeBytes(check)
    return 0
}

private func check(_ bytes: UnsafeRawBufferPointer) {
    guard let content = CacheEntryFile.content(bytes) else { return }
    precondition(content.preamble.fileLength == Int64(bytes.count) && content.body.upperBound <= bytes.count, "lengths")
    let response = content.head.response
    for index in 0..<response.headers.count { _ = (response.headers.name(at: index), response.headers.value(at: index)) }
    _ = CacheKey.matches(response, requestHeaders: HeaderBlock())
    guard let parts = CacheEntryFile.encoded(content.head, bodyChecksum: content.preamble.bodyChecksum) else {
        preconditionFailure("an entry that was read cannot be written")
    }
    let again = (parts.preamble + Array(bytes[content.body]) + parts.head).withUnsafeBytes { CacheEntryFile.content($0) }
    precondition(again?.head == content.head, "changed by writing and reading")
}

/// Returns the preamble of an entry without a body, up to the preamble's checksum.
private func preamble(headLength: Int) -> [UInt8] {
    var bytes = Array("URLLRSP".utf8) + [3]
    for number in [UInt64(headLength), 0, (800_000_000.0).bitPattern, [UInt8]().withUnsafeBytes { ContentChecksum.of($0) }] {
        append(number, to: &bytes)
    }
    return bytes
}

private func append(_ number: UInt64, to bytes: inout [UInt8]) {
    for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(shift * 8))) }
}
