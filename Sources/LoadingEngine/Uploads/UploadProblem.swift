// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPWire
import NIOCore

/// The problem details in the content of a response (RFC 9457).
enum UploadProblem {
    private struct Content: Decodable {
        var type: String?
    }

    /// Whether the content consists of problem details.
    static func isStated(by head: ResponseHead) -> Bool {
        head.headers.first("Content-Type")?.lowercased().hasPrefix("application/problem+json") == true
    }

    /// Returns the problem's type; nil if the problem has no type.
    static func type(_ head: ResponseHead, _ bytes: ByteBuffer) -> String? {
        guard isStated(by: head) else { return nil }
        return (try? JSONDecoder().decode(Content.self, from: Data(bytes.readableBytesView)))?.type
    }
}
