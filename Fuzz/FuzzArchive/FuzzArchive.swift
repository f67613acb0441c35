// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoadingArchive

/// An archive that can be read can be written, and the result is the same after it is read again.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzArchive(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let bytes = Data(UnsafeBufferPointer(start: data, count: size))
    guard let archive = try? HTTPArchive(data: bytes) else { return 0 }
    guard let written = try? archive.data() else { preconditionFailure("what was read cannot be written") }
    guard let again = try? HTTPArchive(data: written) else { preconditionFailure("what was written cannot be read") }
    guard let twice = try? again.data() else { preconditionFailure("what was read again cannot be written") }
    precondition(twice == written, "written differently")
    return 0
}
