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
import Synchronization
import URLLoading

/// `urlsession get`: one request, its body to standard output or a file as it comes.
struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Sends a request and shows the response.",
        discussion: "Redirects are followed and compressed bodies are decoded without being asked for."
    )

    @Argument(help: ArgumentHelp("The URLs; http:// where there is no scheme.", valueName: "url"))
    var addresses: [String] = []

    @Option(name: .customLong("url"), help: "A URL, as one that no option comes before.")
    var namedAddresses: [String] = []

    @OptionGroup(title: "Common options") var result: ResultOptions

    @OptionGroup(title: "File options") var place: PlaceOptions

    @OptionGroup(title: "Options for what is kept") var keeping: KeepingOptions

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

    @Flag(name: .customLong("fail-early"), help: "Of several URLs load none after one that failed.")
    var failsEarly = false

    private var urls: [String] { addresses + namedAddresses }

    func validate() throws {
        if urls.isEmpty { throw ValidationError("There is no URL.") }
        if `repeat` != nil, urls.count > 1 { throw ValidationError("--repeat is for one URL.") }
        if [cached, offline, options.ignoresCache].count(where: { $0 }) > 1 {
            throw ValidationError("--cached, --offline and --no-cache exclude each other.")
        }
        if parallel < 1 || `repeat` ?? 1 < 1 {
            throw ValidationError("--repeat and --parallel begin at 1.")
        }
        if keeping.cookieJar != nil, options.ignoresCookies {
            throw ValidationError("--no-cookies and --cookie-jar exclude each other.")
        }
        if `repeat` != nil, result.failsWithBody || keeping.headFile != nil || result.timeCondition != nil {
            throw ValidationError("--repeat excludes --fail-with-body, --dump-header and --time-cond.")
        }
        if `repeat` != nil, result.continueAt != nil || place.maximumSize != nil {
            throw ValidationError("--repeat excludes --continue-at and --max-filesize.")
        }
        if result.continueAt != nil, options.retries.retry > 0 {
            throw ValidationError("--continue-at excludes --retry: begin again with -C - where a load failed.")
        }
        if result.continueAt != nil, !body.isEmpty {
            throw ValidationError("--continue-at excludes what has a body.")
        }
        // It shows no response, and counts HTTP errors as failures anyway.
        if `repeat` != nil, !result.output.isEmpty || result.include || result.fail || options.verbose || options.metrics {
            throw ValidationError("--repeat excludes --output, --include, --fail, --verbose and --metrics.")
        }
        if `repeat` != nil, result.takesName || options.writeOut != nil || options.retries.retry > 0 || !body.form.isEmpty {
            throw ValidationError("--repeat excludes --remote-name, --write-out, --retry and --form.")
        }
    }

    func run() async throws { try await options.carryOut(loadAll) }

    /// As curl does it, one after the other; how the last one ended is how the command ends.
    private func loadAll() async throws {
        let cookies = try options.cookieStorage(jar: keeping.cookieJar)
        let heads = try keeping.headSink()
        var last: ToolFailure?
        for (index, url) in urls.enumerated() {
            if let last {
                if failsEarly { break }
                options.heard(last).show()
            }
            last = nil
            do {
                try await load(url, at: index, cookies: cookies, heads: heads)
            } catch let failure as ToolFailure where failure.code != 0 || failure.message != nil {
                last = failure
            } catch is ToolFailure {}
        }
        try keeping.keep(cookies)
        if let last { throw last }
    }

    private func load(_ url: String, at index: Int, cookies: HTTPCookieStorage?, heads: BodySink?) async throws {
        let visit = try options.visit(url, cookies: cookies)
        var request = options.request(for: visit.url)
        let addition = try body.add(
            to: &request, keepsMethod: options.common.method != nil, omitting: options.common.omittedHeaders)
        if result.head {
            request.httpMethod = "HEAD"
            // What is asked about is the file as it is.
            if !compressed { visit.configuration.omittedHeaders.insert("accept-encoding") }
        }
        let condition = try addConditions(to: &request, visit)
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
        let file = try result.file(for: visit.url, at: index, place)
        let continuation = try result.continueAt.flatMap { try Continuation($0, file: file) }
        if let continuation {
            guard ServerPlace(visit.url) != nil else { throw ToolFailure(2, "--continue-at is for http and https URLs") }
            request.setValue("bytes=\(continuation.start)-", forHTTPHeaderField: "Range")
            request.cachePolicy = .reloadIgnoringLocalCacheData
            visit.configuration.omittedHeaders.insert("accept-encoding")
        }
        let name = Mutex<String?>(nil)
        try await options.transfer(visit, to: file) { [request] session, attempts in
            let sink = BodySink(path: file, appends: continuation?.isFile == true, sparesTerminal: true)
            var plan = options.plan(
                showsHeaders: result.include || result.head, failsOnHTTPError: result.fail || result.failsWithBody,
                attempts: attempts)
            if continuation != nil { plan.failsOnHTTPError = true }
            plan.keepsErrorBody = result.failsWithBody
            plan.headSink = heads
            plan.maximumSize = place.maximumSize?.bytes
            let meter = options.silent || file == nil || file == "-" ? nil : ProgressMeter()
            if let continuation { meter?.begin(at: continuation.start) }
            let body: (@Sendable () -> InputStream?)? = if case .form(let form) = addition { { form.stream() } } else { nil }
            let observer = TransferObserver(
                plan: plan, answers: visit.answers, sink: sink, meter: meter, bodyStream: body,
                objection: { response in
                    if let continuation { return continuation.objection(to: response) }
                    // What is not wanted is no failure, and the file stays as it is.
                    if let response = response as? HTTPURLResponse, condition?.isMet(by: response) == false {
                        return ToolFailure(0, nil)
                    }
                    return name.withLock { takeServerName(of: response, sink, own: &$0) }
                }
            )
            let opened = session(observer)
            switch addition {
            case .none: return (observer, opened.dataTask(with: request))
            case .form: return (observer, opened.uploadTask(withStreamedRequest: request))
            }
        } finish: { outcome, path in
            try place.date(path, by: outcome.response)
            if let path, result.takesServerName { options.say("saved as \(path)") }
        }
    }

    /// Takes the name that the server gives the file, where `--remote-header-name` wants it.
    ///
    /// - Parameters:
    ///   - response: The response.
    ///   - sink: Where the body goes.
    ///   - own: The name that an attempt before took, whose file is there for that reason.
    /// - Returns: Why that file cannot be created.
    private func takeServerName(of response: URLResponse, _ sink: BodySink, own: inout String?) -> ToolFailure? {
        guard result.takesServerName, sink.path != nil, (response as? HTTPURLResponse)?.statusCode ?? 200 < 400,
            let name = DownloadPlace.suggestion(response)
        else { return nil }
        do throws(BodySink.Failure) {
            let path = place.folder.map { "\($0)/\(name)" } ?? name
            try sink.take(path, replaces: own == path)
            own = path
            return nil
        } catch {
            return ToolFailure(23, error.message)
        }
    }

    /// Adds what `--range` and `--time-cond` ask for.
    private func addConditions(to request: inout URLRequest, _ visit: Visit) throws -> TimeCondition? {
        let isHTTP = ServerPlace(visit.url) != nil
        if let range = result.range {
            guard isHTTP else { throw ToolFailure(2, "--range is for http and https URLs") }
            request.setValue("bytes=" + range, forHTTPHeaderField: "Range")
            // Parts are of the file as it is.
            if !compressed { visit.configuration.omittedHeaders.insert("accept-encoding") }
        }
        guard let text = result.timeCondition else { return nil }
        guard isHTTP else { throw ToolFailure(2, "--time-cond is for http and https URLs") }
        guard let condition = TimeCondition(text) else {
            options.say("warning: '\(text)' is neither a date nor a file: loading without --time-cond")
            return nil
        }
        request.setValue(condition.field.value, forHTTPHeaderField: condition.field.name)
        return condition
    }
}
