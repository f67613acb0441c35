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

    @OptionGroup(title: "Common options") var result: ResultOptions

    @OptionGroup(title: "Options for what is sent") var body: BodyOptions

    @OptionGroup var options: RequestOptions

    @Flag(help: ArgumentHelp("Ask for a compressed body: the default.", visibility: .hidden))
    var compressed = false

    @Flag(help: "Show the stored response without asking the server, as long as it is fresh.")
    var cached = false

    @Flag(help: "Send nothing: show the stored response, of whatever age, or exit with 78.")
    var offline = false

    @Option(help: ArgumentHelp("Send the request so many times and show a summary.", valueName: "count"))
    var `repeat`: Int?

    @Option(help: ArgumentHelp("With --repeat: how many at once.", valueName: "count"))
    var parallel = 1

    func validate() throws {
        if [cached, offline, options.ignoresCache].count(where: { $0 }) > 1 {
            throw ValidationError("--cached, --offline and --no-cache exclude each other.")
        }
        if parallel < 1 || `repeat` ?? 1 < 1 {
            throw ValidationError("--repeat and --parallel begin at 1.")
        }
        // It shows no response, and counts HTTP errors as failures anyway.
        if `repeat` != nil, result.output != nil || result.include || result.fail || options.verbose || options.metrics {
            throw ValidationError("--repeat excludes --output, --include, --fail, --verbose and --metrics.")
        }
        if `repeat` != nil, result.takesName || options.writeOut != nil || options.retries.retry > 0 || !body.form.isEmpty {
            throw ValidationError("--repeat excludes --remote-name, --write-out, --retry and --form.")
        }
    }

    func run() async throws { try await options.carryOut(load) }

    private func load() async throws {
        let visit = try options.visit(url)
        var request = options.request(for: visit.url)
        let addition = try body.add(
            to: &request, keepsMethod: options.common.method != nil, omitting: options.common.omittedHeaders)
        if result.head {
            request.httpMethod = "HEAD"
            // What is asked about is the file as it is.
            if !compressed { visit.configuration.omittedHeaders.insert("accept-encoding") }
        }
        if offline {
            request.cachePolicy = .returnCacheDataDontLoad
        } else if !cached, !options.ignoresCache {
            RequestOptions.askServer(&request)
        }
        if let count = `repeat` {
            let repetition = Repetition(
                request: request, count: count, parallel: parallel, visit: visit, redirects: options.redirects
            )
            try await repetition.run(isSilent: options.silent && !options.showsErrors)
            return
        }
        let file = result.takesName ? try DownloadPlace.name(of: visit.url) : result.output
        try await options.transfer(visit, to: file) { [request] session, attempts in
            let sink = BodySink(path: file, sparesTerminal: true)
            let plan = options.plan(
                showsHeaders: result.include || result.head, failsOnHTTPError: result.fail, attempts: attempts)
            let meter = options.silent || file == nil || file == "-" ? nil : ProgressMeter()
            switch addition {
            case .none:
                let observer = TransferObserver(plan: plan, answers: visit.answers, sink: sink, meter: meter)
                return (observer, session(observer).dataTask(with: request))
            case .form(let form):
                let observer = TransferObserver(
                    plan: plan, answers: visit.answers, sink: sink, meter: meter, bodyStream: { form.stream() }
                )
                return (observer, session(observer).uploadTask(withStreamedRequest: request))
            }
        }
    }
}
