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
            "A request header; without a value, send none; @file has one a line; may be repeated.", valueName: "name: value"))
    var header: [String] = []

    @Option(name: [.customShort("X"), .customLong("request")], help: "The request method.")
    var method: String?

    @Option(
        name: [.customShort("A"), .customLong("user-agent")], help: ArgumentHelp("Say that this program asks.", valueName: "name")
    )
    var userAgent: String?

    @Option(
        name: [.customShort("e"), .customLong("referer")], help: ArgumentHelp("Say that this page led here.", valueName: "url"))
    var referer: String?

    @Option(
        name: [.customShort("m"), .customLong("max-time")],
        help: ArgumentHelp("The most the whole load may take.", valueName: "seconds"))
    var maximumTime: Double?

    @Option(
        name: .customLong("connect-timeout"),
        help: ArgumentHelp("The most that connecting may take: name, connection and TLS.", valueName: "seconds"))
    var connectTimeout: Double?

    @Option(name: .customLong("idle-time"), help: ArgumentHelp("The most the server may stay silent; 60.", valueName: "seconds"))
    var idleTime: Double?

    @Flag(name: .customLong("wait"), help: "Wait for a network where there is none.")
    var waitsForNetwork = false

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

    @Flag(
        name: [.customShort("j"), .customLong("junk-session-cookies")],
        help: "Of files of cookies leave out those that end with their session.")
    var dropsSessionCookies = false

    @Flag(name: .customLong("no-cookies"), help: "Send no stored cookies, and keep none that the server sets.")
    var ignoresCookies = false

    @Flag(name: .customLong("no-cache"), help: "Ask the server, whatever this cache and those between hold.")
    var ignoresCache = false

    @Flag(name: .shortAndLong, help: "No progress and no error messages.")
    var silent = false

    @Flag(name: [.customShort("S"), .customLong("show-error")], help: "With --silent: error messages all the same.")
    var showsErrors = false

    @Option(
        name: .customLong("stderr"), help: ArgumentHelp("Write messages to this file, - for standard output.", valueName: "file"),
        completion: .file())
    var errorFile: String?

    @Flag(name: .shortAndLong, help: "Show requests and responses on standard error.")
    var verbose = false

    @Flag(name: .long, help: "Show where the time went on standard error.")
    var metrics = false

    @Option(
        name: [.customShort("w"), .customLong("write-out")],
        help: ArgumentHelp(
            "At the end write this, with curl's variables: %{http_code}, %header{name}, …; @file reads it from a file.",
            valueName: "format"
        )
    )
    var writeOut: String?

    func validate() throws {
        for field in header where !field.hasPrefix("@") && HeaderLine(field) == nil {
            throw ValidationError("'\(field)' is not a header: \(HeaderLine.advice).")
        }
        if ignoresCookies, !cookieFiles.isEmpty {
            throw ValidationError("--no-cookies excludes a file of cookies; 'name=value' can be sent with it.")
        }
        if [maximumTime, idleTime, connectTimeout].contains(where: { $0.map { !($0 > 0) } ?? false }) {
            throw ValidationError("A time must be more than 0 seconds.")
        }
    }

    /// Reads the files with header fields, so that errors are reported.
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

    /// Whether the value is a cookie instead of a file, by curl's rule.
    static func isPair(_ cookie: String) -> Bool { cookie.contains("=") }

    var cookieFiles: [String] { cookies.filter { !Self.isPair($0) } }
}
