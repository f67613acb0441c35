//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPWire

extension ResumePoint {
    /// The response that the last of the bytes came with: the task's own, should it turn out that no more of them are to come.
    ///
    /// What a server sets or asks for in it is for the load that received it alone, and is left out: resume data may travel.
    package struct Response: Hashable, Sendable {
        package let head: ResponseHead
        /// Bytes of its body, or -1 where it did not say.
        package let expectedLength: Int64

        private static let secretFields: Set<String> = [
            "set-cookie", "set-cookie2", "www-authenticate", "proxy-authenticate", "authentication-info",
            "proxy-authentication-info",
        ]
        /// Of all fields together: ten thousand downloads may each have such a response.
        private static let maximumBytes = 16_384

        /// Nil where it is not of a file or its part, or has more fields than resume data takes.
        package init?(_ head: ResponseHead, expectedLength: Int64) {
            var kept = head
            kept.headers = HeaderBlock()
            // Text for octets, so that names of files come back as they were.
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

        /// Names and values in turn.
        var fieldTexts: [String] {
            head.headers.lines.indices.flatMap {
                [head.headers.name(at: $0), OctetText.text(of: head.headers.bytes[head.headers.lines[$0].value])]
            }
        }

        /// Whether a property list can hold it.
        private static func isText(_ text: String) -> Bool {
            text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0xFFFE && $0.value != 0xFFFF || $0 == "\t" }
        }
    }
}
