// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// The options of a background transfer.
struct BackgroundTransferOptions: ParsableArguments {
    @Option(name: [.customShort("H"), .long], help: ArgumentHelp("A request header; may be repeated.", valueName: "name: value"))
    var header: [String] = []

    @Flag(help: "Let the system choose the time: an unmetered network, external power, and no more urgent transfers.")
    var discretionary = false

    @Option(help: ArgumentHelp("The priority among waiting transfers, from 0 to 1; 0.5 by default.", valueName: "priority"))
    var priority: Float?

    @Option(
        name: .customLong("not-before"),
        help: ArgumentHelp(
            "The earliest time to begin: 2030-01-31T08:00, or a number of seconds from now.", valueName: "date|+seconds"),
        transform: BeginTime.init
    )
    var notBefore: BeginTime?

    @Flag(help: "Wait until the transfers are done, and show their progress. After Ctrl-C, urlsessiond continues them.")
    var wait = false

    @Flag(name: .shortAndLong, help: "Print neither numbers nor progress.")
    var silent = false

    func validate() throws {
        for field in header where HeaderLine(field)?.value == nil {
            throw ValidationError("'\(field)' is not a header: write 'Name: value'.")
        }
        if let priority, !(0...1 ~= priority) { throw ValidationError("--priority must be from 0 to 1.") }
    }

    func request(for url: URL) -> URLRequest {
        var request = URLRequest(url: url)
        for line in header.compactMap(HeaderLine.init) {
            if let value = line.value { request.addValue(value, forHTTPHeaderField: line.name) }
        }
        return request
    }

    func apply(to task: URLSessionTask) {
        if let priority { task.priority = priority }
        task.earliestBeginDate = notBefore?.date
    }

    /// Parses a URL that the daemon can load.
    static func url(_ text: String) throws -> URL {
        let url = try RequestOptions.url(text)
        guard ["http", "https"].contains(url.scheme?.lowercased()) else {
            throw ToolFailure(1, "background transfers support only http and https: \(RequestOptions.hidingUser(text))")
        }
        return url
    }
}

/// A time in the syntax of `--not-before`.
struct BeginTime: Sendable {
    let date: Date

    init(_ text: String) throws {
        if text.hasPrefix("+"), let seconds = Double(text.dropFirst()), seconds >= 0, seconds < 1e10 {
            date = Date(timeIntervalSinceNow: seconds)
            return
        }
        // Without a time zone, the user's own time zone applies.
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        let times = ["'T'HH:mm:ss", "'T'HH:mm", " HH:mm:ss", " HH:mm"]
        for format in times.flatMap({ [$0, $0 + "XXXXX"] }) + [""] {
            formatter.dateFormat = "yyyy-MM-dd" + format
            if let date = formatter.date(from: text) {
                self.date = date
                return
            }
        }
        throw ValidationError(
            "'\(text)' is not a time: write 2030-01-31T08:00, with Z or an offset for another zone, or +SECONDS.")
    }
}
