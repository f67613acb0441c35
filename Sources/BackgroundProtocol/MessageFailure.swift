// SPDX-License-Identifier: Apache-2.0

/// Why a message cannot be decoded or encoded.
package enum MessageFailure: Error, Hashable, Sendable {
    /// The message, or an event, command, question, answer or request in it, is of an unknown kind.
    case unknownKind(String)
    /// Describes the problem.
    case malformed(String)

    /// The maximum length of an excerpt in a failure.
    private static let textLimit = 200

    static func excerpt(_ text: String) -> String {
        text.utf8.count <= textLimit ? text : String(decoding: text.utf8.prefix(textLimit), as: UTF8.self) + "…"
    }
}

/// An error of another process, of which only the text is known.
package struct DescribedError: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
