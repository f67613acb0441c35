// SPDX-License-Identifier: Apache-2.0

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
        try refuse(if: urls.isEmpty && address.lists.isEmpty, "No URL was given.")
        try refuse(if: `repeat` != nil && (urls.count > 1 || !address.lists.isEmpty), "--repeat accepts only one URL.")
        try refuse(
            if: [cached, offline, options.ignoresCache].count(where: { $0 }) > 1,
            "--cached, --offline and --no-cache are mutually exclusive.")
        try refuse(if: `repeat` ?? 1 < 1, "--repeat must be at least 1.")
        try refuse(
            if: keeping.cookieJar != nil && options.ignoresCookies,
            "--no-cookies and --cookie-jar are mutually exclusive.")
        try refuse(
            if: `repeat` != nil && (result.failsWithBody || keeping.headFile != nil || result.timeCondition != nil),
            "--repeat cannot be combined with --fail-with-body, --dump-header or --time-cond.")
        try refuse(
            if: `repeat` != nil && (result.continueAt != nil || place.maximumSize != nil),
            "--repeat cannot be combined with --continue-at or --max-filesize.")
        try refuse(
            if: result.continueAt != nil && options.retries.retry > 0,
            "--continue-at cannot be combined with --retry: after a failure, run the command again with '-C -'.")
        try refuse(
            if: result.continueAt != nil && !body.isEmpty && body.uploads.isEmpty,
            "--continue-at cannot be combined with a request body.")
        try refuse(if: !body.isRepeatable && options.retries.retry > 0, "--retry cannot send standard input twice.")
        try refuse(
            if: (tags.compared != nil || tags.saved != nil) && urls.count > 1,
            "--etag-compare and --etag-save accept only one URL.")
        // --repeat shows no response, and always counts HTTP errors as failures.
        try refuse(
            if: `repeat` != nil
                && (!result.output.isEmpty || result.include || result.fail || options.verbose || options.metrics),
            "--repeat cannot be combined with --output, --include, --fail, --verbose or --metrics.")
        try refuse(if: `repeat` != nil && options.archive.file != nil, "--repeat cannot be combined with --har.")
        try refuse(
            if: `repeat` != nil
                && (result.takesName || options.writeOut != nil || options.retries.retry > 0 || !body.form.isEmpty
                    || !body.uploads.isEmpty || options.pace.rate != nil),
            "--repeat cannot be combined with --remote-name, --write-out, --retry, --form, --upload-file or --limit-rate.")
    }

    func run() async throws { try await options.perform(loadAll) }

    private func loadAll() async throws {
        let orders = try address.orders(addresses, uploads: body.uploads.map { $0 == "." ? "-" : $0 })
        let cookies = try options.cookieStorage(jar: keeping.cookieJar)
        let heads = try keeping.headSink()
        let last = await load(orders, isParallel: address.parallel && `repeat` == nil, cookies, heads)
        try keeping.keep(cookies)
        if let last { throw last }
    }

    /// Loads the URLs one after the other or several at once.
    ///
    /// As with curl, the last URL determines the command's result; of URLs that are loaded at once, the last one that failed.
    private func load(
        _ orders: [LoadOrder], isParallel: Bool, _ cookies: HTTPCookieStorage?, _ heads: BodySink?
    ) async -> ToolFailure? {
        var failures: [Int: ToolFailure] = [:]
        var last = 0
        await withTaskGroup(of: (Int, ToolFailure?).self) { group in
            var rest = orders[...]
            func begin() {
                guard let order = rest.popFirst() else { return }
                group.addTask { (order.number, await failure(of: order, cookies, heads)) }
            }
            for _ in 0..<(isParallel ? address.most ?? 50 : 1) { begin() }
            for await (number, failure) in group {
                last = number
                failures[number] = failure
                if failure != nil, address.failsEarly { rest = [] }
                if let failure, isParallel || !rest.isEmpty {
                    options.reportable(failure).show()
                    failures[number]?.message = nil
                }
                begin()
            }
        }
        return isParallel ? failures.max { $0.key < $1.key }?.value : failures[last]
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
