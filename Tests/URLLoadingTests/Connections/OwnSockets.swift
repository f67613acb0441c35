// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A socket of this process that is connected to a port, with its options.
struct OwnSocket {
    private let descriptor: CInt

    static func connected(to port: Int) -> [OwnSocket] {
        (0..<1_024).filter { peerPort(of: $0) == port }.map { OwnSocket(descriptor: $0) }
    }

    /// The value of an option; -1 if it is not available.
    func option(_ level: CInt, _ name: CInt) -> CInt {
        var value: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(descriptor, level, name, &value, &length) == 0 ? value : -1
    }

    private static func peerPort(of descriptor: CInt) -> Int? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) }
        }
        guard result == 0, [AF_INET, AF_INET6].contains(Int32(storage.ss_family)) else { return nil }
        // The port is at the same offset in both address types.
        return withUnsafeBytes(of: storage) { Int($0[2]) << 8 | Int($0[3]) }
    }
}

/// Captures the packets of the loopback interface; requires root.
final class LoopbackCapture {
    struct Packet: Hashable {
        var isV6: Bool
        var sourcePort: Int
        var destinationPort: Int
        /// The type of service (IPv4), or the traffic class (IPv6).
        var service: UInt8
        var isSYN: Bool
    }

    private let descriptor: CInt

    init?() {
        // `ETH_P_ALL` (all protocols) in network byte order.
        descriptor = socket(
            AF_PACKET, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), CInt(UInt16(3).bigEndian))
        guard descriptor >= 0 else { return nil }
        var size: CInt = 1 << 22
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
    }

    deinit { close(descriptor) }

    /// The packets that were sent to a port so far.
    func packets(to port: Int) -> [Packet] {
        var packets: [Packet] = []
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &bytes, bytes.count, 0)
            guard count > 0 else { return packets }
            if let packet = Self.packet(bytes[..<count]), packet.destinationPort == port { packets.append(packet) }
        }
    }

    private static func packet(_ bytes: ArraySlice<UInt8>) -> Packet? {
        guard bytes.count >= 40 else { return nil }
        let isV6 = bytes[0] >> 4 == 6
        let isTCP = bytes[isV6 ? 6 : 9] == 6
        let header = isV6 ? 40 : Int(bytes[0] & 15) * 4
        guard isTCP, bytes.count >= header + 20 else { return nil }
        return Packet(
            isV6: isV6, sourcePort: Int(bytes[header]) << 8 | Int(bytes[header + 1]),
            destinationPort: Int(bytes[header + 2]) << 8 | Int(bytes[header + 3]),
            service: isV6 ? bytes[0] << 4 | bytes[1] >> 4 : bytes[1], isSYN: bytes[header + 13] & 2 != 0
        )
    }
}
