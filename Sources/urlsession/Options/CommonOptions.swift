// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// The options of every load: request header fields, timeouts, redirects, cookies and messages.
struct CommonOptions: ParsableArguments {
    @Option(
        "-H --header <name: value>",
        "A request header; without a value, it is omitted; @file contains one per line; may be repeated.")
    var header: [String] = []

    @Option("-X --request <request>", "The request method.")
    var method: String?

    @Option("-A --user-agent <name>", "The value of the User-Agent header.")
    var userAgent: String?

    @Option("-e --referer <url>", "The value of the Referer header.")
    var referer: String?

    @Option("-m --max-time <seconds>", "The timeout of the whole load.")
    var maximumTime: Double?

    @Option("--connect-timeout <seconds>", "The timeout for connecting: name lookup, connection and TLS.")
    var connectTimeout: Double?

    @Option("--idle-time <seconds>", "How long the server may stay silent; 60 by default.")
    var idleTime: Double?

    @Flag("--wait", "Wait for a network if there is none.")
    var waitsForNetwork = false

    @Flag("--no-location", "Show a redirect instead of following it.")
    var staysPut = false

    @Flag("-L --location", "Follow redirects: the default.", visibility: .hidden)
    var followsRedirects = false

    @Option("--max-redirs <count>", "The maximum number of redirects to follow.")
    var maximumRedirects: Int?

    @Option(
        "-b --cookies --cookie <name=value|file>",
        "Also send this cookie, or send those of a cookies.txt file instead of the stored ones; may be repeated.")
    var cookies: [String] = []

    @Flag("-j --junk-session-cookies", "Ignore session cookies in cookie files.")
    var dropsSessionCookies = false

    @Flag("--no-cookies", "Send no stored cookies, and store none that the server sets.")
    var ignoresCookies = false

    @Flag("--no-cache", "Ask the server, regardless of this cache and of caches in between.")
    var ignoresCache = false

    @Flag("--silent -s", "Show no progress and no error messages.")
    var silent = false

    @Flag("-S --show-error", "With --silent: show error messages anyway.")
    var showsErrors = false

    @Option("--stderr <file>", "Write messages to this file, - for standard output.")
    var errorFile: String?

    @Flag("--verbose -v", "Show requests and responses on standard error.")
    var verbose = false

    @Flag("--metrics", "Show the timings on standard error.")
    var metrics = false

    @Option(
        "-w --write-out <format>",
        "At the end, write this, with curl's variables: %{http_code}, %header{name}, …; @file reads it from a file.")
    var writeOut: String?

    func validate() throws {
        for field in header where !field.hasPrefix("@") && HeaderLine(field) == nil {
            throw ValidationError("'\(field)' is not a header: \(HeaderLine.advice).")
        }
        try refuse(
            if: ignoresCookies && !cookieFiles.isEmpty,
            "--no-cookies cannot be combined with a cookie file, only with 'name=value'.")
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
