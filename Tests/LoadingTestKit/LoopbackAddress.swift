// SPDX-License-Identifier: Apache-2.0

#if canImport(Glibc)
import Glibc
#endif

/// The address 127.0.0.1 and a port, for system calls.
///
/// It holds the bytes of a `sockaddr_in` rather than such a value, because the module in which Swift finds the members of that type
/// depends on the order of compilation.
struct LoopbackAddress {
    private var bytes = [UInt8](repeating: 0, count: 16)

    init(port: Int = 0) {
        bytes.withUnsafeMutableBytes { $0.storeBytes(of: UInt16(AF_INET), as: UInt16.self) }
        bytes[2] = UInt8(truncatingIfNeeded: port >> 8)
        bytes[3] = UInt8(truncatingIfNeeded: port)
        bytes.replaceSubrange(4..<8, with: [127, 0, 0, 1])
    }

    var port: Int { Int(bytes[2]) << 8 | Int(bytes[3]) }

    mutating func call<Result>(_ body: (UnsafeMutablePointer<sockaddr>, inout socklen_t) -> Result) -> Result? {
        var length = socklen_t(bytes.count)
        return bytes.withUnsafeMutableBytes { buffer in
            buffer.baseAddress.map { body($0.assumingMemoryBound(to: sockaddr.self), &length) }
        }
    }
}
