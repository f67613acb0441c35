//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession cache show`: shows a stored response as it was received, fresh or not, without sending a request.
struct CacheShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Shows a stored response: its headers and its body.",
        discussion: "Nothing is sent. Where the URL is not stored, the exit code is 78."
    )

    @Argument(help: "The URL; http:// where there is no scheme.")
    var url: String

    @Flag(help: "Show the headers alone.")
    var headers = false

    @Flag(help: "Show the body alone.")
    var body = false

    func validate() throws {
        if headers, body {
            throw ValidationError("--headers and --body exclude each other; without them, both are shown.")
        }
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
