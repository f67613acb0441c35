// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession cache show`: shows a stored response as it was received, fresh or not, without sending a request.
struct CacheShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Shows a stored response: its headers and its body.",
        discussion: "No request is sent. If the URL is not stored, the exit code is 78."
    )

    @Argument(help: "The URL; without a scheme, http:// is assumed.")
    var url: String

    @Flag("--headers", "Show only the headers.")
    var headers = false

    @Flag("--body", "Show only the body.")
    var body = false

    func validate() throws {
        try refuse(if: headers && body, "--headers and --body are mutually exclusive; without them, both are shown.")
    }

    func run() throws {
        let source = try RequestOptions.url(url)
        guard let entry = URLCache.shared.cachedResponse(for: URLRequest(url: source)) else {
            throw ToolFailure(78, "\(source.absoluteString) is not stored")
        }
        if !body {
            try StandardOutput.write(HeadText.response(entry.response, prefix: "", isForPeople: StandardOutput.isTerminal))
        }
        if !headers {
            try StandardOutput.write(entry.data, advice: "send it to a file with '> FILE'")
        }
    }
}
