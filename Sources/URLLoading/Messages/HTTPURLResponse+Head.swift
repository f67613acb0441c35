// SPDX-License-Identifier: Apache-2.0

import HTTPWire

extension HTTPURLResponse {
    /// The head as the server sent it: the status line and the field lines in order, without line terminators.
    ///
    /// A response from the cache has the stored field lines. A response that the app created has its fields sorted by name, and a
    /// status line without a reason phrase.
    ///
    /// Not in Apple's API, which keeps neither the order nor the reason phrase.
    public var headLines: [String] { MessageLines.of(self) }
}

/// Message heads in wire format (RFC 9112, sections 3, 4 and 5), line by line.
enum MessageLines {
    static func of(_ head: RequestHead) -> [String] {
        ["\(head.method) \(head.target) \(version(head.majorVersion, 1))"] + fields(head.headers)
    }

    static func of(_ response: HTTPURLResponse) -> [String] {
        let reason = response.reason.isEmpty ? "" : " " + response.reason
        return ["\(version(response.majorVersion, response.minorVersion)) \(response.statusCode)\(reason)"]
            + fields(response.headers)
    }

    /// Returns the version for a start line.
    ///
    /// HTTP/2 and later have no minor version (RFC 9113, section 2.2) and no start line; the line made here represents their
    /// pseudo-header fields.
    private static func version(_ major: Int, _ minor: Int) -> String { major == 1 ? "HTTP/1.\(minor)" : "HTTP/\(major)" }

    private static func fields(_ headers: HeaderBlock) -> [String] {
        headers.fields.map { $0.value.isEmpty ? "\($0.name):" : "\($0.name): \($0.value)" }
    }
}
