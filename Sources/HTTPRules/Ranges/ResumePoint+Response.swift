// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

extension ResumePoint {
    /// The response with which the last bytes were received.
    ///
    /// This response becomes the task's response if the file turns out to be complete.
    ///
    /// Fields with which a server sets or requests secrets are omitted. These fields are only for the load that received
    /// them, whereas resume data can be copied to other machines.
    package struct Response: Hashable, Sendable {
        package let head: ResponseHead
        /// The length of the body in bytes, or -1 if unknown.
        package let expectedLength: Int64

        private static let secretFields: Set<String> = [
            "set-cookie", "set-cookie2", "www-authenticate", "proxy-authenticate", "authentication-info",
            "proxy-authentication-info",
        ]
        /// The maximum size of all fields.
        ///
        /// The limit is low because there may be ten thousand downloads with such a response.
        private static let maximumBytes = 16_384

        /// Returns nil if the response is neither a 200 nor a 206, or if its fields are too large for resume data.
        package init?(_ head: ResponseHead, expectedLength: Int64) {
            var kept = head
            kept.headers = HeaderBlock()
            // Values are stored as text that represents octets, so that file names are preserved.
            for index in head.headers.lines.indices {
                let name = head.headers.name(at: index)
                let value = OctetText.text(of: head.headers.bytes[head.headers.lines[index].value])
                guard !Self.secretFields.contains(name.lowercased()), ASCII.isToken(name), Self.isText(value) else { continue }
                kept.headers.append(name, value)
            }
            if !Self.isText(kept.reason) { kept.reason = "" }
            self.head = kept
            self.expectedLength = expectedLength
            guard isPlausible else { return nil }
        }

        var isPlausible: Bool {
            (head.status == 200 || head.status == 206) && 1...9 ~= head.majorVersion && 0...9 ~= head.minorVersion
                && expectedLength >= -1 && head.headers.bytes.count + head.reason.utf8.count <= Self.maximumBytes
        }

        /// Alternating names and values.
        var fieldTexts: [String] {
            head.headers.lines.indices.flatMap {
                [head.headers.name(at: $0), OctetText.text(of: head.headers.bytes[head.headers.lines[$0].value])]
            }
        }

        /// Whether a property list can contain the text.
        private static func isText(_ text: String) -> Bool {
            text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0xFFFE && $0.value != 0xFFFF || $0 == "\t" }
        }
    }
}
