//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire

extension HTTPURLResponse {
    /// The head as the server sent it: the status line, and the field lines in their order, without line ends.
    ///
    /// A response from the cache has what was stored of it; one that the app made has its fields by name, and a status line without a
    /// reason.
    ///
    /// Not in Apple's API, which keeps neither the order nor the reason.
    public var headLines: [String] { MessageLines.of(self) }
}

/// The heads of messages as they are on the wire (RFC 9112, sections 3, 4 and 5), line by line.
enum MessageLines {
    static func of(_ head: RequestHead) -> [String] {
        ["\(head.method) \(head.target) \(version(head.majorVersion, 1))"] + fields(head.headers)
    }

    static func of(_ response: HTTPURLResponse) -> [String] {
        let reason = response.reason.isEmpty ? "" : " " + response.reason
        return ["\(version(response.majorVersion, response.minorVersion)) \(response.statusCode)\(reason)"]
            + fields(response.headers)
    }

    /// From version 2 on there is no minor one (RFC 9113, section 2.2), nor a start line; it stands for what fields say there.
    private static func version(_ major: Int, _ minor: Int) -> String { major == 1 ? "HTTP/1.\(minor)" : "HTTP/\(major)" }

    private static func fields(_ headers: HeaderBlock) -> [String] {
        headers.fields.map { $0.value.isEmpty ? "\($0.name):" : "\($0.name): \($0.value)" }
    }
}
