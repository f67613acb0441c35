//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import URLLoading

/// The heads of messages as they are on the wire, line by line.
enum HeadText {
    /// Passwords and tokens are not shown; cookies are, as by curl.
    static func request(_ lines: [String], prefix: String) -> String {
        text(lines.map(hidingSecret), prefix: prefix)
    }

    static func response(_ response: URLResponse, prefix: String, isForPeople: Bool = false) -> String {
        guard let response = response as? HTTPURLResponse else {
            return text(["\(response.mimeType ?? "unknown type"), \(response.expectedContentLength) bytes"], prefix: prefix)
        }
        return text(response.headLines, prefix: prefix, isForPeople: isForPeople)
    }

    /// Of a field that says who the user is, the scheme alone.
    private static func hidingSecret(_ line: String) -> String {
        let parts = line.split(separator: ":", maxSplits: 1)
        guard parts.count == 2, ["authorization", "proxy-authorization"].contains(parts[0].lowercased()) else { return line }
        let words = parts[1].split(separator: " ", maxSplits: 1)
        // What is one word may be the secret itself.
        return "\(parts[0]): \(words.count == 2 ? words[0] + " " : "")(not shown)"
    }

    /// What a server sends to people moves no cursor; programs have it as it came.
    private static func text(_ lines: [String], prefix: String, isForPeople: Bool = false) -> String {
        (lines.map { prefix.isEmpty && !isForPeople ? $0 : TextTable.harmless($0) } + [""]).map { prefix + $0 + "\n" }.joined()
    }
}
