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

/// `urlsession get`: one request, its body to standard output or a file as it comes.
struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Sends a request and shows the response.",
        discussion: "Redirects are followed and compressed bodies are decoded without being asked for."
    )

    @Argument(help: "The URL; http:// where there is no scheme.")
    var url: String

    @OptionGroup var options: RequestOptions

    @Option(
        name: [.customShort("d"), .long],
        help: ArgumentHelp("A body to POST; @file reads a file, - standard input.", valueName: "body")
    )
    var data: String?

    @Option(help: ArgumentHelp("A JSON body to POST, read as --data is.", valueName: "body"))
    var json: String?

    @Option(name: .shortAndLong, help: ArgumentHelp("Write the body to this file.", valueName: "file"))
    var output: String?

    @Flag(name: .shortAndLong, help: "Show the response's headers before its body.")
    var include = false

    @Flag(name: [.customShort("I"), .long], help: "Ask for the headers alone (HEAD).")
    var head = false

    @Flag(name: .shortAndLong, help: "Show no body and exit with 22 when the server answers 400 or more.")
    var fail = false

    @Flag(help: ArgumentHelp("Ask for a compressed body: the default.", visibility: .hidden))
    var compressed = false

    @Flag(help: "Send nothing: show the stored response, of whatever age, or exit with 78.")
    var offline = false

    @Option(help: ArgumentHelp("Send the request so many times and show a summary.", valueName: "count"))
    var `repeat`: Int?

    @Option(help: ArgumentHelp("With --repeat: how many at once.", valueName: "count"))
    var parallel = 1

    func validate() throws {
        if data != nil, json != nil {
            throw ValidationError("--data and --json exclude each other.")
        }
        if offline, options.ignoresCache {
            throw ValidationError("--offline and --no-cache exclude each other.")
        }
        if parallel < 1 || `repeat` ?? 1 < 1 {
            throw ValidationError("--repeat and --parallel begin at 1.")
        }
        // It shows no response, and counts HTTP errors as failures anyway.
        if `repeat` != nil, output != nil || include || fail || options.verbose || options.metrics {
            throw ValidationError("--repeat excludes --output, --include, --fail, --verbose and --metrics.")
        }
    }

    func run() async throws {
        do {
            try await load()
        } catch let failure as ToolFailure {
            throw options.quieted(failure)
        }
    }

    private func load() async throws {
        let visit = try options.visit(url)
        var request = options.request(for: visit.url)
        try RequestBody.add(data: data, json: json, to: &request)
        if head {
            request.httpMethod = "HEAD"
        }
        if offline {
            request.cachePolicy = .returnCacheDataDontLoad
        }
        if let count = `repeat` {
            let repetition = Repetition(
                request: request, count: count, parallel: parallel, visit: visit, redirects: options.redirects
            )
            try await repetition.run(isSilent: options.silent)
            return
        }
        let sink = BodySink(path: output)
        let observer = TransferObserver(
            plan: options.plan(showsHeaders: include || head, failsOnHTTPError: fail), answers: visit.answers, sink: sink
        )
        let session = URLSession(configuration: visit.configuration, delegate: observer, delegateQueue: nil)
        let outcome = await observer.load(session.dataTask(with: request))
        session.finishTasksAndInvalidate()
        try options.conclude(outcome)
        do {
            try sink.close()
        } catch {
            throw ToolFailure(23, error.message)
        }
    }
}

extension RequestOptions {
    func plan(showsHeaders: Bool = false, failsOnHTTPError: Bool) -> TransferObserver.Plan {
        TransferObserver.Plan(
            redirects: redirects, showsHeaders: showsHeaders, failsOnHTTPError: failsOnHTTPError, isVerbose: verbose
        )
    }

    /// Shows the metrics where they are wanted, and throws where the load did not end well.
    func conclude(_ outcome: TransferObserver.State) throws {
        if metrics, let metrics = outcome.metrics {
            StandardError.write(Waterfall(metrics).text())
        }
        if let failure = outcome.failure {
            throw failure
        }
        if let error = outcome.error {
            let failure = ToolFailure(
                error, answered: outcome.response != nil, received: outcome.received,
                expected: outcome.response?.expectedContentLength ?? -1
            )
            // With a proxy no other name is looked up.
            throw failure.code == 6 && login.proxy != nil ? ToolFailure(5, failure.message) : failure
        }
    }
}
