// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LibC

extension UnsafeMutableRawBufferPointer {
    /// Memory from `malloc`, or nil if the allocation fails: the length comes from a file, and may be too large.
    static func allocated(_ count: Int) -> UnsafeMutableRawBufferPointer? {
        malloc(count).map { UnsafeMutableRawBufferPointer(start: $0, count: count) }
    }

    func deallocateAllocated() { free(baseAddress) }

    /// A part of the memory as a value that owns and frees all of it.
    func takenData(of part: Range<Int>? = nil) -> Data {
        let part = part ?? 0..<count
        guard let start = baseAddress, !part.isEmpty, part.upperBound <= count else {
            deallocateAllocated()
            return Data()
        }
        // `free` needs the pointer that `malloc` returned.
        if part.lowerBound == 0 { return Data(bytesNoCopy: start, count: part.count, deallocator: .free) }
        let offset = part.lowerBound
        return Data(bytesNoCopy: start + offset, count: part.count, deallocator: .custom { part, _ in free(part - offset) })
    }
}
