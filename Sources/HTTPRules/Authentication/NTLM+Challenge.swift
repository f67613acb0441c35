//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extension NTLM {
    /// The server's message (MS-NLMP, section 2.2.1.2).
    package struct Challenge: Sendable, Hashable {
        let flags: Flags
        let serverChallenge: [UInt8]
        let targetInformation: TargetInformation
        /// As it came: the code over all three messages takes it.
        let bytes: [UInt8]

        /// Nil where the bytes are no such message.
        package init?(_ bytes: [UInt8]) {
            guard bytes.count >= 32, bytes.starts(with: NTLM.signature), Self.number(bytes, at: 8) == 2,
                let flags = Self.number(bytes, at: 20)
            else { return nil }
            self.bytes = bytes
            self.flags = Flags(rawValue: flags)
            serverChallenge = Array(bytes[24..<32])
            // A server without the flag may leave the field out, or leave rubbish in it.
            guard self.flags.contains(.targetInfo) else {
                targetInformation = TargetInformation()
                return
            }
            guard let size = Self.number(bytes, at: 40), let offset = Self.number(bytes, at: 44) else { return nil }
            let count = Int(size & 0xFFFF)
            guard count == 0 || Int(offset) + count <= bytes.count, count <= TargetInformation.maximumBytes,
                let information = TargetInformation(count == 0 ? [] : bytes[Int(offset)..<(Int(offset) + count)])
            else { return nil }
            targetInformation = information
        }

        /// What the server says of itself, in its own encoding.
        package var targetInfo: [UInt8] { targetInformation.bytes }
        /// The server's time in the units of FILETIME, if it sends one.
        package var timestamp: UInt64? { targetInformation.timestamp }

        private static func number(_ bytes: [UInt8], at offset: Int) -> UInt32? {
            guard offset + 4 <= bytes.count else { return nil }
            return (0..<4).reduce(0) { $0 | UInt32(bytes[offset + $1]) << UInt32($1 * 8) }
        }
    }
}
