// SPDX-License-Identifier: Apache-2.0

extension NTLM {
    /// Encodes an AUTHENTICATE_MESSAGE (MS-NLMP, section 2.2.1.3).
    struct Message {
        /// The position of the MIC, if present.
        static let micRange = 72..<88

        let flags: Flags
        let version: [UInt8]
        let hasMIC: Bool
        let domain: [UInt8]
        let user: [UInt8]
        let workstation: [UInt8]
        /// `LmChallengeResponse`.
        let lmResponse: [UInt8]
        /// `NtChallengeResponse`.
        let response: [UInt8]

        /// The message with zeros instead of the MIC.
        var bytes: [UInt8] {
            let head = hasMIC ? Self.micRange.upperBound : Self.micRange.lowerBound
            var payload: [UInt8] = []
            func place(_ field: [UInt8]) -> [UInt8] {
                // Names are short, and the size of a challenge's target information is limited to fit 16 bits.
                let count = UInt16(clamping: field.count)
                defer { payload += field }
                return NTLM.littleEndian(count) + NTLM.littleEndian(count)
                    + NTLM.littleEndian(UInt32(truncatingIfNeeded: head + payload.count))
            }
            let domain = place(domain)
            let user = place(user)
            let workstation = place(workstation)
            let lmResponse = place(lmResponse)
            let response = place(response)
            // No session key is exchanged.
            let key = place([])
            var bytes =
                NTLM.signature + NTLM.littleEndian(3 as UInt32) + lmResponse + response + domain + user + workstation + key
            bytes += NTLM.littleEndian(flags.rawValue) + (flags.contains(.version) ? version : [UInt8](repeating: 0, count: 8))
            if hasMIC { bytes += [UInt8](repeating: 0, count: 16) }
            return bytes + payload
        }
    }
}
