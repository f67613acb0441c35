// SPDX-License-Identifier: Apache-2.0

extension NTLM {
    /// The attribute-value pairs that describe the server, and that the client extends in its response (MS-NLMP, section 2.2.2.1).
    struct TargetInformation: Sendable, Hashable {
        private struct Pair: Sendable, Hashable {
            let name: UInt16
            let value: [UInt8]
        }

        /// The attribute IDs, whose names in MS-NLMP begin with `MsvAv`.
        private enum Name {
            static let end: UInt16 = 0
            static let flags: UInt16 = 6
            static let timestamp: UInt16 = 7
            static let targetName: UInt16 = 9
            static let channelBindings: UInt16 = 10
        }

        /// The maximum size in bytes, far more than any server sends.
        ///
        /// The limit leaves space for the client's own pairs in a 16-bit length.
        static let maximumBytes = 32_768

        private var pairs: [Pair] = []

        init() {}

        /// Parses the pairs; returns nil if a pair extends beyond the buffer.
        ///
        /// A missing end marker is accepted.
        init?(_ bytes: ArraySlice<UInt8>) {
            var rest = bytes
            while rest.count >= 4 {
                let head = Array(rest.prefix(4))
                let name = UInt16(head[0]) | UInt16(head[1]) << 8
                let count = Int(head[2]) | Int(head[3]) << 8
                rest = rest.dropFirst(4)
                guard name != Name.end else { return }
                guard count <= rest.count else { return nil }
                pairs.append(Pair(name: name, value: Array(rest.prefix(count))))
                rest = rest.dropFirst(count)
            }
            guard rest.isEmpty else { return nil }
        }

        var timestamp: UInt64? {
            guard let value = pairs.first(where: { $0.name == Name.timestamp })?.value, value.count == 8 else { return nil }
            return value.reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }

        var bytes: [UInt8] { Self.encoded(pairs) }

        /// Returns the target information for the client's response (section 3.1.5.1.2): the server's pairs and the pairs that the
        /// client adds.
        func answer(hasMIC: Bool, channelBinding: [UInt8]?, servicePrincipal: [UInt8]?) -> [UInt8] {
            var pairs = pairs.filter { $0.name != Name.targetName && $0.name != Name.channelBindings }
            if hasMIC {
                let flags = pairs.first { $0.name == Name.flags && $0.value.count == 4 }?.value ?? [0, 0, 0, 0]
                pairs.removeAll { $0.name == Name.flags }
                // "0x00000002: the client is providing message integrity in the MIC field".
                pairs.append(Pair(name: Name.flags, value: [flags[0] | 2] + flags.dropFirst()))
            }
            if let channelBinding { pairs.append(Pair(name: Name.channelBindings, value: channelBinding)) }
            if let servicePrincipal { pairs.append(Pair(name: Name.targetName, value: servicePrincipal)) }
            return Self.encoded(pairs)
        }

        private static func encoded(_ pairs: [Pair]) -> [UInt8] {
            (pairs + [Pair(name: Name.end, value: [])]).flatMap { pair in
                NTLM.littleEndian(pair.name) + NTLM.littleEndian(UInt16(clamping: pair.value.count)) + pair.value
            }
        }
    }
}
