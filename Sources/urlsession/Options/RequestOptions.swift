// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// The options of all commands that load something, with the common options first.
@dynamicMemberLookup
struct RequestOptions: ParsableArguments {
    @OptionGroup(title: "Common options") var common: CommonOptions

    @OptionGroup(title: "Retry options") var retries: RetryOptions

    @OptionGroup(title: "Speed options") var pace: SpeedOptions

    @OptionGroup(title: "Connection options") var connections: ConnectionOptions

    @OptionGroup(title: "Authentication and proxy options") var login: LoginOptions

    @OptionGroup(title: "TLS options") var trust: TrustOptions

    @OptionGroup(title: "Archive options") var archive: ArchiveOptions

    subscript<Value>(dynamicMember option: KeyPath<CommonOptions, Value>) -> Value { common[keyPath: option] }

    var redirects: RedirectRule {
        RedirectRule(
            follows: !common.staysPut, most: common.maximumRedirects, schemes: connections.schemes,
            redirectSchemes: connections.redirectSchemes)
    }

    /// Returns a configuration with the stored cookies and responses, which all runs of the tool share.
    ///
    /// - Parameter cookies: Replaces the stored cookies, if not nil.
    /// - Throws: If a file of an option cannot be read.
    /// - Returns: The configuration for a session.
    func configuration(cookies: HTTPCookieStorage?) throws -> URLSessionConfiguration {
        try common.readHeaderFiles()
        let configuration = URLSessionConfiguration.default
        if let idleTime = common.idleTime {
            configuration.timeoutIntervalForRequest = idleTime
        }
        if let maximumTime = common.maximumTime {
            configuration.timeoutIntervalForResource = maximumTime
        }
        configuration.waitsForConnectivity = common.waitsForNetwork
        configuration.omittedHeaders = common.omittedHeaders
        if let cookies = try cookies ?? cookieStorage() { configuration.httpCookieStorage = cookies }
        return configuration
    }

    func request(for url: URL) -> URLRequest {
        var request = URLRequest(url: url)
        request.assumesHTTP3Capable = connections.http3
        if let method = common.method {
            request.httpMethod = method
        }
        for line in common.headerLines {
            if let value = line.value { request.addValue(value, forHTTPHeaderField: line.name) }
        }
        let omitted = common.omittedHeaders
        for (name, value) in [("User-Agent", common.userAgent), ("Referer", common.referer)] {
            if let value, !omitted.contains(name.lowercased()), request.value(forHTTPHeaderField: name) == nil {
                request.setValue(value, forHTTPHeaderField: name)
            }
        }
        if let token = login.bearerToken, request.value(forHTTPHeaderField: "Authorization") == nil {
            request.setValue("Bearer " + token, forHTTPHeaderField: "Authorization")
        }
        let given = common.cookies.filter(CommonOptions.isPair)
        if !given.isEmpty {
            let own = request.value(forHTTPHeaderField: "Cookie").map { [$0] } ?? []
            request.setValue((own + given).joined(separator: "; "), forHTTPHeaderField: "Cookie")
        }
        request.httpShouldHandleCookies = !common.ignoresCookies
        if common.ignoresCache {
            request.cachePolicy = .reloadIgnoringLocalAndRemoteCacheData
        }
        return request
    }

    /// Changes a request so that it is sent to the server even if a stored response is fresh or `immutable` (RFC 8246), and so that
    /// an error response is shown instead of a stored response.
    ///
    /// A GET becomes conditional on the stored response. The user's own conditions and `Cache-Control` are sent unchanged.
    static func askServer(_ request: inout URLRequest) {
        let own = ["Cache-Control", "Pragma", "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since"]
        guard (request.httpMethod ?? "GET") == "GET", own.allSatisfy({ request.value(forHTTPHeaderField: $0) == nil }) else {
            request.cachePolicy = .reloadIgnoringLocalCacheData
            return
        }
        request.cachePolicy = .reloadRevalidatingCacheData
        // The field that the policy itself adds does not override `immutable`.
        request.setValue("max-age=0", forHTTPHeaderField: "Cache-Control")
    }

    /// Returns a cookie storage in memory: cookies that the server sets are added for this run only, and the files stay unchanged.
    ///
    /// As in curl, an empty file name stands for no cookies.
    ///
    /// - Parameter jar: The file to which the cookies are written; it need not exist yet.
    /// - Throws: If a file cannot be read.
    /// - Returns: Nil to use the stored cookies.
    func cookieStorage(jar: String? = nil) throws -> HTTPCookieStorage? {
        let files = common.cookieFiles
        guard !files.isEmpty || jar != nil else { return nil }
        let storage = HTTPCookieStorage()
        for file in files where !file.isEmpty && (file != jar || FileManager.default.fileExists(atPath: file)) {
            for cookie in HTTPCookie.cookies(netscapeFile: try CookieFile.read(file))
            where !(common.dropsSessionCookies && cookie.isSessionOnly) {
                storage.setCookie(cookie)
            }
        }
        return storage
    }

    /// Returns the index after `scheme://`; nil if an address has no scheme.
    static func schemeEnd(_ text: String) -> String.Index? {
        guard let sign = text.range(of: "://"), let first = text.first, first.isASCII, first.isLetter,
            text[..<sign.lowerBound].allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "+.-".contains($0)) })
        else { return nil }
        return sign.upperBound
    }

    static func hasScheme(_ text: String) -> Bool {
        schemeEnd(text) != nil || ["data:", "file:"].contains { text.lowercased().hasPrefix($0) }
    }

    /// Parses a URL; as with curl, an address without a scheme is an http URL.
    static func url(_ text: String) throws -> URL {
        guard let url = URL(string: hasScheme(text) ? text : "http://" + text) else {
            // A text that may contain a password is not shown, because the end of the password is unknown.
            throw ToolFailure(3, text.contains("@") ? "that is not a URL" : "'\(text)' is not a URL")
        }
        return url
    }

    /// Returns an address for display, without the user name and password.
    static func hidingUser(_ text: String) -> String {
        let start = schemeEnd(text) ?? text.startIndex
        let end = text[start...].firstIndex { "/?#".contains($0) } ?? text.endIndex
        guard let sign = text[start..<end].lastIndex(of: "@") else { return text }
        return String(text[..<start]) + text[text.index(after: sign)...]
    }

    /// Runs a command's work; if it fails, `--silent` suppresses the message, and the cause is shown only with `--verbose`.
    func perform(_ work: () async throws -> Void) async throws {
        do {
            if let file = common.errorFile { try StandardError.move(to: file) }
            try await archive.recording(work)
        } catch let failure as ToolFailure {
            throw reportable(failure)
        }
    }

    /// Returns the part of a failure that the user wants to see.
    func reportable(_ failure: ToolFailure) -> ToolFailure {
        var failure = failure
        if common.silent, !common.showsErrors { failure.message = nil }
        if !common.verbose { failure.cause = nil }
        return failure
    }

    /// Refuses options that do not apply to a command that sends its input over one connection while it reads the input.
    func refuseRepetition(for command: String) throws {
        try refuse(if: archive.file != nil, "\(command) cannot be combined with --har.")
        try refuse(
            if: common.method != nil || common.writeOut != nil || retries.retry > 0 || pace.rate != nil || pace.slowest != nil,
            "\(command) cannot be combined with --request, --write-out, --retry, --limit-rate or --speed-limit.")
    }
}
