//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import ArgumentParser

/// The options of every load: request header fields, timeouts, redirects, cookies and messages.
struct CommonOptions: ParsableArguments {
    @Option(
        name: [.customShort("H"), .long],
        help: ArgumentHelp(
            "A request header; without a value, it is omitted; @file contains one per line; may be repeated.",
            valueName: "name: value"))
    var header: [String] = []

    @Option(name: [.customShort("X"), .customLong("request")], help: "The request method.")
    var method: String?

    @Option(
        name: [.customShort("A"), .customLong("user-agent")],
        help: ArgumentHelp("The value of the User-Agent header.", valueName: "name")
    )
    var userAgent: String?

    @Option(
        name: [.customShort("e"), .customLong("referer")],
        help: ArgumentHelp("The value of the Referer header.", valueName: "url"))
    var referer: String?

    @Option(
        name: [.customShort("m"), .customLong("max-time")],
        help: ArgumentHelp("The timeout of the whole load.", valueName: "seconds"))
    var maximumTime: Double?

    @Option(
        name: .customLong("connect-timeout"),
        help: ArgumentHelp("The timeout for connecting: name lookup, connection and TLS.", valueName: "seconds"))
    var connectTimeout: Double?

    @Option(
        name: .customLong("idle-time"),
        help: ArgumentHelp("How long the server may stay silent; 60 by default.", valueName: "seconds"))
    var idleTime: Double?

    @Flag(name: .customLong("wait"), help: "Wait for a network if there is none.")
    var waitsForNetwork = false

    @Flag(name: .customLong("no-location"), help: "Show a redirect instead of following it.")
    var staysPut = false

    @Flag(
        name: [.customShort("L"), .customLong("location")],
        help: ArgumentHelp("Follow redirects: the default.", visibility: .hidden))
    var followsRedirects = false

    @Option(name: .customLong("max-redirs"), help: ArgumentHelp("The maximum number of redirects to follow.", valueName: "count"))
    var maximumRedirects: Int?

    @Option(
        name: [.customShort("b"), .customLong("cookies"), .customLong("cookie")],
        help: ArgumentHelp(
            "Also send this cookie, or send those of a cookies.txt file instead of the stored ones; may be repeated.",
            valueName: "name=value|file"
        )
    )
    var cookies: [String] = []

    @Flag(
        name: [.customShort("j"), .customLong("junk-session-cookies")],
        help: "Ignore session cookies in cookie files.")
    var dropsSessionCookies = false

    @Flag(name: .customLong("no-cookies"), help: "Send no stored cookies, and store none that the server sets.")
    var ignoresCookies = false

    @Flag(name: .customLong("no-cache"), help: "Ask the server, regardless of this cache and of caches in between.")
    var ignoresCache = false

    @Flag(name: .shortAndLong, help: "Show no progress and no error messages.")
    var silent = false

    @Flag(name: [.customShort("S"), .customLong("show-error")], help: "With --silent: show error messages anyway.")
    var showsErrors = false

    @Option(
        name: .customLong("stderr"), help: ArgumentHelp("Write messages to this file, - for standard output.", valueName: "file"),
        completion: .file())
    var errorFile: String?

    @Flag(name: .shortAndLong, help: "Show requests and responses on standard error.")
    var verbose = false

    @Flag(name: .long, help: "Show the timings on standard error.")
    var metrics = false

    @Option(
        name: [.customShort("w"), .customLong("write-out")],
        help: ArgumentHelp(
            "At the end, write this, with curl's variables: %{http_code}, %header{name}, …; @file reads it from a file.",
            valueName: "format"
        )
    )
    var writeOut: String?

    func validate() throws {
        for field in header where !field.hasPrefix("@") && HeaderLine(field) == nil {
            throw ValidationError("'\(field)' is not a header: \(HeaderLine.advice).")
        }
        if ignoresCookies, !cookieFiles.isEmpty {
            throw ValidationError("--no-cookies cannot be combined with a cookie file, only with 'name=value'.")
        }
        if [maximumTime, idleTime, connectTimeout].contains(where: { $0.map { !($0 > 0) } ?? false }) {
            throw ValidationError("A time must be more than 0 seconds.")
        }
    }

    /// Reads the files with header fields, so that errors are reported before anything is loaded.
    func readHeaderFiles() throws(ToolFailure) {
        for argument in header { _ = try HeaderLine.lines(of: argument) }
    }

    var headerLines: [HeaderLine] { header.flatMap { (try? HeaderLine.lines(of: $0)) ?? [] } }

    /// The header fields to suppress, in lower case.
    var omittedHeaders: Set<String> {
        let lines = headerLines
        let sent = Set(lines.filter { $0.value != nil }.map { $0.name.lowercased() })
        return Set(lines.map { $0.name.lowercased() }).subtracting(sent)
    }

    /// Whether the value is a cookie instead of a file name, by curl's rule.
    static func isPair(_ cookie: String) -> Bool { cookie.contains("=") }

    var cookieFiles: [String] { cookies.filter { !Self.isPair($0) } }
}
