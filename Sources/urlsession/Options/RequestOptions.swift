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

/// The options every command has: what to send, how far to go, what to say about it.
struct RequestOptions: ParsableArguments {
    @Option(name: [.customShort("H"), .long], help: ArgumentHelp("A request header; may be repeated.", valueName: "name: value"))
    var header: [String] = []

    @Option(name: [.customShort("X"), .customLong("request")], help: "The request method.")
    var method: String?

    @Option(name: .customLong("max-time"), help: ArgumentHelp("The most the whole load may take.", valueName: "seconds"))
    var maximumTime: Double?

    @Option(name: .customLong("idle-time"), help: ArgumentHelp("The most the server may stay silent; 60.", valueName: "seconds"))
    var idleTime: Double?

    @Flag(name: .customLong("no-location"), help: "Deliver a redirect in place of following it.")
    var staysPut = false

    @Flag(
        name: [.customShort("L"), .customLong("location")],
        help: ArgumentHelp("Follow redirects: the default.", visibility: .hidden))
    var followsRedirects = false

    @Option(name: .customLong("max-redirs"), help: ArgumentHelp("The most redirects to follow.", valueName: "count"))
    var maximumRedirects: Int?

    @Option(
        name: [.customShort("b"), .customLong("cookies"), .customLong("cookie")],
        help: ArgumentHelp(
            "Send this cookie, too, or those of a cookies.txt file in place of the stored ones; may be repeated.",
            valueName: "name=value|file"
        )
    )
    var cookies: [String] = []

    @Flag(name: .customLong("no-cookies"), help: "Send no stored cookies, and keep none that the server sets.")
    var ignoresCookies = false

    @Flag(name: .customLong("no-cache"), help: "Ask the server, whatever this cache and those between hold.")
    var ignoresCache = false

    @Flag(name: .shortAndLong, help: "No progress and no error messages.")
    var silent = false

    @Flag(name: .shortAndLong, help: "Show requests and responses on standard error.")
    var verbose = false

    @Flag(name: .long, help: "Show where the time went on standard error.")
    var metrics = false

    @OptionGroup(title: "Authentication and proxy options") var login: LoginOptions

    @OptionGroup(title: "TLS options") var trust: TrustOptions

    func validate() throws {
        for field in header where !field.dropFirst().contains(":") {
            throw ValidationError("'\(field)' is not a header: write 'Name: value'.")
        }
        if ignoresCookies, !cookieFiles.isEmpty {
            throw ValidationError("--no-cookies excludes a file of cookies; 'name=value' can be sent with it.")
        }
        if [maximumTime, idleTime].contains(where: { $0.map { !($0 > 0) } ?? false }) {
            throw ValidationError("A time must be more than 0 seconds.")
        }
    }

    var redirects: RedirectRule { RedirectRule(follows: !staysPut, most: maximumRedirects) }

    /// With the stored cookies and responses, which all runs of the tool share.
    func configuration() throws -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.default
        if let idleTime {
            configuration.timeoutIntervalForRequest = idleTime
        }
        if let maximumTime {
            configuration.timeoutIntervalForResource = maximumTime
        }
        if !cookieFiles.isEmpty {
            configuration.httpCookieStorage = try storage(of: cookieFiles)
        }
        return configuration
    }

    func request(for url: URL) -> URLRequest {
        var request = URLRequest(url: url)
        if let method {
            request.httpMethod = method
        }
        for field in header {
            let parts = field.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            request.addValue(
                parts[1].trimmingCharacters(in: .whitespaces), forHTTPHeaderField: parts[0].trimmingCharacters(in: .whitespaces)
            )
        }
        let given = cookies.filter(Self.isPair)
        if !given.isEmpty {
            let own = request.value(forHTTPHeaderField: "Cookie").map { [$0] } ?? []
            request.setValue((own + given).joined(separator: "; "), forHTTPHeaderField: "Cookie")
        }
        request.httpShouldHandleCookies = !ignoresCookies
        if ignoresCache {
            request.cachePolicy = .reloadIgnoringLocalAndRemoteCacheData
        }
        return request
    }

    /// As curl tells them apart.
    private static func isPair(_ cookie: String) -> Bool { cookie.contains("=") }

    private var cookieFiles: [String] { cookies.filter { !Self.isPair($0) } }

    /// In memory: what the server sets joins them for this run alone, and the files stay as they are.
    ///
    /// An empty name stands for no cookies, as with curl.
    private func storage(of files: [String]) throws -> HTTPCookieStorage {
        let storage = HTTPCookieStorage()
        for file in files where !file.isEmpty {
            for cookie in HTTPCookie.cookies(netscapeFile: try CookieFile.read(file)) {
                storage.setCookie(cookie)
            }
        }
        return storage
    }

    /// As curl does, an address without a scheme is an http one.
    static func url(_ text: String) throws -> URL {
        let hasScheme = text.contains("://") || text.lowercased().hasPrefix("data:") || text.lowercased().hasPrefix("file:")
        guard let url = URL(string: hasScheme ? text : "http://" + text) else {
            // Where the password in it ends nobody knows.
            throw ToolFailure(3, text.contains("@") ? "that is not a URL" : "'\(text)' is not a URL")
        }
        return url
    }

    /// An address as it may be shown: without a user name and a password.
    static func hidingUser(_ text: String) -> String {
        let start = text.range(of: "://")?.upperBound ?? text.startIndex
        let end = text[start...].firstIndex { "/?#".contains($0) } ?? text.endIndex
        guard let sign = text[start..<end].lastIndex(of: "@") else { return text }
        return String(text[..<start]) + text[text.index(after: sign)...]
    }

    /// `--silent` leaves the exit code alone to speak; causes are for `--verbose`.
    func quieted(_ failure: ToolFailure) -> ToolFailure {
        var failure = failure
        if silent { failure.message = nil }
        if !verbose { failure.cause = nil }
        return failure
    }
}
