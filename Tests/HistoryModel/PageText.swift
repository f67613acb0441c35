//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// What a server puts at the head of a body: for whom, over which connection and of which version it is.
package struct PageHead: Codable, Sendable, Hashable {
    /// The load whose request it answers; 0 where all are sent the same.
    package var load: Int
    /// Which server it is: the one that the URL names, or the one that connections are led to.
    package var server: String
    package var identity: Identity?
    package var page: Page
    package var version: Int
    /// The credential that came with the request.
    package var credential: String?
    package var cookie: String?
    package var field: String?
    /// The load whose redirect led here.
    package var via: Int?
    package var lines: Int
    /// Stands in what no disk may hold.
    package var mark: String?

    package init(load: Int, server: String, identity: Identity?, page: Page, version: Int, lines: Int) {
        self.load = load
        self.server = server
        self.identity = identity
        self.page = page
        self.version = version
        self.lines = lines
    }
}

/// Bodies: a head, then lines that each name their body, so that bytes of two bodies are never taken for one.
package enum PageText {
    /// In all that must not be on a disk.
    package static let mark = "must-leave-no-trace"
    /// What the `URLProtocol` class of the workers answers with.
    package static let byProtocol = "answered by a protocol class"

    package static func text(_ head: PageHead) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let first = (try? encoder.encode(head)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        let name =
            "\(head.server) \(head.identity?.rawValue ?? "-") load \(head.load) version \(head.version)"
            + (head.credential.map { " for \($0)" } ?? "")
        var text = first + "\n"
        for number in 0..<head.lines { text += "line \(number) of \(name)\n" }
        return text + "end of \(name)\n"
    }

    /// The head, if the whole text is what a server makes of it.
    package static func head(of text: String) -> PageHead? {
        guard let end = text.firstIndex(of: "\n"),
            let head = try? JSONDecoder().decode(PageHead.self, from: Data(text[..<end].utf8))
        else { return nil }
        return head.lines < 100_000 && Self.text(head) == text ? head : nil
    }

    /// The head of a text that may be cut off.
    package static func beginning(of text: String) -> PageHead? {
        guard let end = text.firstIndex(of: "\n") else { return nil }
        return try? JSONDecoder().decode(PageHead.self, from: Data(text[..<end].utf8))
    }

    /// The certificates over whose connections the parts came, if the text is one version of a page in two parts.
    ///
    /// Two servers that name one version by the same strong validator cannot be told apart by it.
    package static func identities(joinedIn text: String) -> [Identity]? {
        guard let end = text.firstIndex(of: "\n"),
            var head = try? JSONDecoder().decode(PageHead.self, from: Data(text[..<end].utf8)),
            let identity = head.identity, head.lines < 100_000
        else { return nil }
        let (bytes, first) = (Array(text.utf8), Array(Self.text(head).utf8))
        let length = zip(bytes, first).prefix { $0 == $1 }.count
        for other in Identity.allCases where other != identity {
            head.identity = other
            let second = Array(Self.text(head).utf8)
            if second.count == bytes.count, second[length...].elementsEqual(bytes[length...]) { return [identity, other] }
        }
        return nil
    }
}
