// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession cache clear`: removes the stored responses of one URL, or all stored responses.
struct CacheClearCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "clear", abstract: "Removes stored responses.")

    @Argument(help: "Only the responses of this URL.")
    var url: String?

    func run() throws {
        let cache = URLCache.shared
        let before = cache.entries().count
        if let url {
            cache.removeCachedResponse(for: URLRequest(url: try RequestOptions.url(url)))
        } else {
            cache.removeAllCachedResponses()
        }
        StandardError.print("removed \(Count.text(before - cache.entries().count, "response"))")
    }
}
