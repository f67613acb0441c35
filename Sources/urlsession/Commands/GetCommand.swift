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

/// `urlsession get`: sends a request, and writes the body to standard output or a file as it arrives.
struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Sends a request and shows the response.",
        discussion: "Redirects are followed, and compressed bodies are decoded, by default."
    )

    @Argument(help: ArgumentHelp("The URLs; without a scheme, http:// is assumed.", valueName: "url"))
    var addresses: [String] = []

    @OptionGroup(title: "Common options") var result: ResultOptions

    @OptionGroup(title: "File options") var place: OutputFileOptions

    @OptionGroup(title: "Options for saved data") var keeping: SavedDataOptions

    @OptionGroup(title: "Options for several URLs") var address: AddressOptions

    @OptionGroup(title: "Options for saved data") var tags: EntityTagOptions

    @OptionGroup(title: "Request body options") var body: BodyOptions

    @OptionGroup var needless: NoEffectOptions

    @OptionGroup var options: RequestOptions

    @Flag("--compressed", "Request a compressed body: the default.", visibility: .hidden)
    var compressed = false

    @Flag("--cached", "Show the stored response without asking the server if it is fresh.")
    var cached = false

    @Flag("--offline", "Send nothing: show the stored response, even a stale one, or exit with 78.")
    var offline = false

    @Option("--repeat <count>", "Send the request this many times and show a summary.")
    var `repeat`: Int?

    private var urls: [String] { addresses + address.named }

    func validate() throws {
        if urls.isEmpty, address.lists.isEmpty { throw ValidationError("No URL was given.") }
        if `repeat` != nil, urls.count > 1 || !address.lists.isEmpty { throw ValidationError("--repeat accepts only one URL.") }
        if [cached, offline, options.ignoresCache].count(where: { $0 }) > 1 {
            throw ValidationError("--cached, --offline and --no-cache are mutually exclusive.")
        }
        if `repeat` ?? 1 < 1 { throw ValidationError("--repeat must be at least 1.") }
        if keeping.cookieJar != nil, options.ignoresCookies {
            throw ValidationError("--no-cookies and --cookie-jar are mutually exclusive.")
        }
        if `repeat` != nil, result.failsWithBody || keeping.headFile != nil || result.timeCondition != nil {
            throw ValidationError("--repeat cannot be combined with --fail-with-body, --dump-header or --time-cond.")
        }
        if `repeat` != nil, result.continueAt != nil || place.maximumSize != nil {
            throw ValidationError("--repeat cannot be combined with --continue-at or --max-filesize.")
        }
        if result.continueAt != nil, options.retries.retry > 0 {
            throw ValidationError(
                "--continue-at cannot be combined with --retry: after a failure, run the command again with '-C -'.")
        }
        if result.continueAt != nil, !body.isEmpty, body.uploads.isEmpty {
            throw ValidationError("--continue-at cannot be combined with a request body.")
        }
        if !body.isRepeatable, options.retries.retry > 0 {
            throw ValidationError("--retry cannot send standard input twice.")
        }
        if tags.compared != nil || tags.saved != nil, urls.count > 1 {
            throw ValidationError("--etag-compare and --etag-save accept only one URL.")
        }
        // --repeat shows no response, and always counts HTTP errors as failures.
        if `repeat` != nil, !result.output.isEmpty || result.include || result.fail || options.verbose || options.metrics {
            throw ValidationError("--repeat cannot be combined with --output, --include, --fail, --verbose or --metrics.")
        }
        if `repeat` != nil, options.archive.file != nil { throw ValidationError("--repeat cannot be combined with --har.") }
        if `repeat` != nil,
            result.takesName || options.writeOut != nil || options.retries.retry > 0 || !body.form.isEmpty
                || !body.uploads.isEmpty || options.pace.rate != nil
        {
            throw ValidationError(
                "--repeat cannot be combined with --remote-name, --write-out, --retry, --form, --upload-file or --limit-rate.")
        }
    }

    func run() async throws { try await options.perform(loadAll) }

    private func loadAll() async throws {
        let orders = try address.orders(addresses, uploads: body.uploads.map { $0 == "." ? "-" : $0 })
        let cookies = try options.cookieStorage(jar: keeping.cookieJar)
        let heads = try keeping.headSink()
        let last =
            address.parallel && `repeat` == nil
            ? await loadConcurrently(orders, cookies, heads) : await loadSequentially(orders, cookies, heads)
        try keeping.keep(cookies)
        if let last { throw last }
    }

    /// Loads the URLs one after the other; as with curl, the result of the last load is the command's result.
    private func loadSequentially(_ orders: [LoadOrder], _ cookies: HTTPCookieStorage?, _ heads: BodySink?) async -> ToolFailure?
    {
        var last: ToolFailure?
        for order in orders {
            if let last {
                if address.failsEarly { break }
                options.reportable(last).show()
            }
            last = await failure(of: order, cookies, heads)
        }
        return last
    }

    /// Loads several URLs at once; if some loads fail, the last of them in command-line order determines the command's result.
    private func loadConcurrently(_ orders: [LoadOrder], _ cookies: HTTPCookieStorage?, _ heads: BodySink?) async -> ToolFailure?
    {
        var failures: [Int: ToolFailure] = [:]
        await withTaskGroup(of: (Int, ToolFailure?).self) { group in
            var rest = orders[...]
            func begin() {
                guard let order = rest.popFirst() else { return }
                group.addTask { (order.number, await failure(of: order, cookies, heads)) }
            }
            for _ in 0..<(address.most ?? 50) { begin() }
            for await (number, failure) in group {
                if var failure {
                    options.reportable(failure).show()
                    failure.message = nil
                    failures[number] = failure
                    if address.failsEarly { rest = [] }
                }
                begin()
            }
        }
        return failures.max { $0.key < $1.key }?.value
    }

    private func failure(of order: LoadOrder, _ cookies: HTTPCookieStorage?, _ heads: BodySink?) async -> ToolFailure? {
        do {
            try await load(order, cookies: cookies, heads: heads)
            return nil
        } catch let failure as ToolFailure {
            return failure.code != 0 || failure.message != nil ? failure : nil
        } catch {
            return ToolFailure(2, "\(error)")
        }
    }
}
