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
        discussion: "Redirects are followed and compressed bodies are decoded without being asked for."
    )

    @Argument(help: ArgumentHelp("The URLs; http:// where there is no scheme.", valueName: "url"))
    var addresses: [String] = []

    @OptionGroup(title: "Common options") var result: ResultOptions

    @OptionGroup(title: "File options") var place: PlaceOptions

    @OptionGroup(title: "Options for what is kept") var keeping: KeepingOptions

    @OptionGroup(title: "Options for several URLs") var address: AddressOptions

    @OptionGroup(title: "Options for what is kept") var tags: EntityTagOptions

    @OptionGroup(title: "Options for what is sent") var body: BodyOptions

    @OptionGroup var needless: NeedlessOptions

    @OptionGroup var options: RequestOptions

    @Flag(help: ArgumentHelp("Ask for a compressed body: the default.", visibility: .hidden))
    var compressed = false

    @Flag(help: "Show the stored response without asking the server, as long as it is fresh.")
    var cached = false

    @Flag(help: "Send nothing: show the stored response, of whatever age, or exit with 78.")
    var offline = false

    @Option(help: ArgumentHelp("Send the request so many times and show a summary.", valueName: "count"))
    var `repeat`: Int?

    private var urls: [String] { addresses + address.named }

    func validate() throws {
        if urls.isEmpty, address.lists.isEmpty { throw ValidationError("There is no URL.") }
        if `repeat` != nil, urls.count > 1 || !address.lists.isEmpty { throw ValidationError("--repeat is for one URL.") }
        if [cached, offline, options.ignoresCache].count(where: { $0 }) > 1 {
            throw ValidationError("--cached, --offline and --no-cache exclude each other.")
        }
        if `repeat` ?? 1 < 1 { throw ValidationError("--repeat begins at 1.") }
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
        if result.continueAt != nil, !body.isEmpty, body.uploads.isEmpty {
            throw ValidationError("--continue-at excludes what has a body.")
        }
        if !body.isRepeatable, options.retries.retry > 0 {
            throw ValidationError("--retry cannot send standard input twice.")
        }
        if tags.compared != nil || tags.saved != nil, urls.count > 1 {
            throw ValidationError("--etag-compare and --etag-save are for one URL.")
        }
        // --repeat shows no response, and counts HTTP errors as failures anyway.
        if `repeat` != nil, !result.output.isEmpty || result.include || result.fail || options.verbose || options.metrics {
            throw ValidationError("--repeat excludes --output, --include, --fail, --verbose and --metrics.")
        }
        if `repeat` != nil, options.archive.file != nil { throw ValidationError("--repeat excludes --har.") }
        if `repeat` != nil,
            result.takesName || options.writeOut != nil || options.retries.retry > 0 || !body.form.isEmpty
                || !body.uploads.isEmpty || options.pace.rate != nil
        {
            throw ValidationError(
                "--repeat excludes --remote-name, --write-out, --retry, --form, --upload-file and --limit-rate.")
        }
    }

    func run() async throws { try await options.carryOut(loadAll) }

    private func loadAll() async throws {
        let orders = try address.orders(addresses, uploads: body.uploads.map { $0 == "." ? "-" : $0 })
        let cookies = try options.cookieStorage(jar: keeping.cookieJar)
        let heads = try keeping.headSink()
        let last =
            address.parallel && `repeat` == nil
            ? await loadAtOnce(orders, cookies, heads) : await loadInTurn(orders, cookies, heads)
        try keeping.keep(cookies)
        if let last { throw last }
    }

    /// Loads the URLs one after the other; as with curl, the result of the last one is the command's result.
    private func loadInTurn(_ orders: [LoadOrder], _ cookies: HTTPCookieStorage?, _ heads: BodySink?) async -> ToolFailure? {
        var last: ToolFailure?
        for order in orders {
            if let last {
                if address.failsEarly { break }
                options.heard(last).show()
            }
            last = await failure(of: order, cookies, heads)
        }
        return last
    }

    /// Loads several URLs at once; if some fail, the last failed URL determines the command's result.
    private func loadAtOnce(_ orders: [LoadOrder], _ cookies: HTTPCookieStorage?, _ heads: BodySink?) async -> ToolFailure? {
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
                    options.heard(failure).show()
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
