// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession cache list`: prints a line for each stored response, sorted by URL.
struct CacheListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Shows which responses are stored.",
        discussion: """
            The columns are when a response was stored, until when it is fresh, the body's size (in JSON in bytes), the status, the \
            media type and the URL.
            """
    )

    @OptionGroup var output: ListOutput

    private struct Item: ListItem {
        let url: String
        let status: Int
        let mimeType: String?
        let stored: String
        let expires: String?
        let bodyLength: Int64
        let size: Int64

        static var titles: [String] { ["STORED", "FRESH UNTIL", "BODY", "STATUS", "TYPE", "URL"] }

        var row: [String] { [stored, expires ?? "-", ByteText.size(bodyLength), "\(status)", mimeType ?? "-", url] }
    }

    func run() throws {
        let items = URLCache.shared.entries().map { entry in
            Item(
                url: entry.url.absoluteString, status: entry.status, mimeType: entry.mimeType,
                stored: entry.storedAt.ISO8601Format(), expires: entry.expires?.ISO8601Format(), bodyLength: entry.bodyLength,
                size: entry.size)
        }
        try output.write(items.sorted { ($0.url, $0.stored) < ($1.url, $1.stored) })
    }
}
