// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// Formats the heads of messages for output, with one line per field.
enum HeadText {
    /// Returns a request head without passwords and tokens; as in curl, cookies are shown.
    static func request(_ lines: [String], prefix: String) -> String {
        text(lines.map(hidingSecret), prefix: prefix)
    }

    static func response(_ response: URLResponse, prefix: String, isForPeople: Bool = false) -> String {
        guard let response = response as? HTTPURLResponse else {
            return text(["\(response.mimeType ?? "unknown type"), \(response.expectedContentLength) bytes"], prefix: prefix)
        }
        return text(response.headLines, prefix: prefix, isForPeople: isForPeople)
    }

    /// Reduces the value of an Authorization or Proxy-Authorization field to the authentication scheme.
    private static func hidingSecret(_ line: String) -> String {
        let parts = line.split(separator: ":", maxSplits: 1)
        guard parts.count == 2, ["authorization", "proxy-authorization"].contains(parts[0].lowercased()) else { return line }
        let words = parts[1].split(separator: " ", maxSplits: 1)
        // A single word may itself be the secret.
        return "\(parts[0]): \(words.count == 2 ? words[0] + " " : "")(not shown)"
    }

    /// Escapes control characters in text for display; programs receive the text unchanged.
    private static func text(_ lines: [String], prefix: String, isForPeople: Bool = false) -> String {
        (lines.map { prefix.isEmpty && !isForPeople ? $0 : TextTable.sanitized($0) } + [""]).map { prefix + $0 + "\n" }.joined()
    }
}
