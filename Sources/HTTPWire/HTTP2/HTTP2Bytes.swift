// SPDX-License-Identifier: Apache-2.0

/// Integers in network byte order.
///
/// The caller has checked the lengths.
enum HTTP2Bytes {
    @inline(__always)
    static func uint16(_ bytes: UnsafeRawBufferPointer, _ position: Int) -> UInt16 {
        UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt16.self))
    }

    @inline(__always)
    static func uint32(_ bytes: UnsafeRawBufferPointer, _ position: Int) -> UInt32 {
        UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt32.self))
    }

    @inline(__always)
    static func uint64(_ bytes: UnsafeRawBufferPointer, _ position: Int) -> UInt64 {
        UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
    }

    /// Reads a stream identifier or window increment without the reserved bit (RFC 9113, section 4.1: it "MUST be ignored when
    /// receiving").
    @inline(__always)
    static func uint31(_ bytes: UnsafeRawBufferPointer, _ position: Int) -> UInt32 { uint32(bytes, position) & 0x7FFF_FFFF }

    @inline(__always)
    static func put<Number: FixedWidthInteger>(_ number: Number, _ buffer: UnsafeMutableRawBufferPointer, _ position: Int) {
        buffer.storeBytes(of: number.bigEndian, toByteOffset: position, as: Number.self)
    }
}
