// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The head of a body: the load that it is for, the connection over which it was sent, and its version.
package struct PageHead: Codable, Sendable, Hashable {
    /// The number of the load whose request is answered; 0 for a page that is the same for all loads.
    package var load: Int
    /// The server: the one that the URL names, or the one that connections are redirected to.
    package var server: String
    package var identity: Identity?
    package var page: Page
    package var version: Int
    /// The credential in the request.
    package var credential: String?
    package var cookie: String?
    package var field: String?
    /// The load whose redirect led to this page.
    package var via: Int?
    package var lines: Int
    /// A text that is present in pages that must not be on any disk.
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

/// Bodies: a head, then lines that each identify their body, so that bytes of two bodies cannot be confused.
package enum PageText {
    /// A text that is part of every body that must not be stored on a disk.
    package static let mark = "must-leave-no-trace"
    /// The response of the workers' `URLProtocol` class.
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

    /// The head, if the text is the whole body of a server's response.
    package static func head(of text: String) -> PageHead? {
        guard let end = text.firstIndex(of: "\n"),
            let head = try? JSONDecoder().decode(PageHead.self, from: Data(text[..<end].utf8))
        else { return nil }
        return head.lines < 100_000 && Self.text(head) == text ? head : nil
    }

    /// The head of a possibly truncated text.
    package static func beginning(of text: String) -> PageHead? {
        guard let end = text.firstIndex(of: "\n") else { return nil }
        return try? JSONDecoder().decode(PageHead.self, from: Data(text[..<end].utf8))
    }

    /// The certificates of the connections that the two parts came over, if the text is one version of a page in two parts.
    ///
    /// If two servers use the same strong validator for a version of a page, the validator cannot tell the servers apart.
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
