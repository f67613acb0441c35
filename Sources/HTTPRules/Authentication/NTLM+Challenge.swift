// SPDX-License-Identifier: Apache-2.0

extension NTLM {
    /// The server's CHALLENGE_MESSAGE (MS-NLMP, section 2.2.1.2).
    package struct Challenge: Sendable, Hashable {
        let flags: Flags
        let serverChallenge: [UInt8]
        let targetInformation: TargetInformation
        /// The original bytes, because the MIC covers all three messages.
        let bytes: [UInt8]

        /// Returns nil if the bytes are not a valid message.
        package init?(_ bytes: [UInt8]) {
            guard bytes.count >= 32, bytes.starts(with: NTLM.signature), Self.number(bytes, at: 8) == 2,
                let flags = Self.number(bytes, at: 20)
            else { return nil }
            self.bytes = bytes
            self.flags = Flags(rawValue: flags)
            serverChallenge = Array(bytes[24..<32])
            // Without the flag, the field may be absent or contain arbitrary bytes.
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

        /// The server's target information in its original encoding.
        package var targetInfo: [UInt8] { targetInformation.bytes }
        /// The server's time in FILETIME units; nil if the server sent no time.
        package var timestamp: UInt64? { targetInformation.timestamp }

        private static func number(_ bytes: [UInt8], at offset: Int) -> UInt32? {
            guard offset + 4 <= bytes.count else { return nil }
            return (0..<4).reduce(0) { $0 | UInt32(bytes[offset + $1]) << UInt32($1 * 8) }
        }
    }
}
