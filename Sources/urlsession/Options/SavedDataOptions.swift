// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// The options for saving response heads and cookies.
struct SavedDataOptions: ParsableArguments {
    @Option("-D --dump-header <file>", "Write the heads of all responses to this file, as received.")
    var headFile: String?

    @Option("-c --cookie-jar <file>", "Write the cookies to this cookies.txt file at the end; stored cookies are not sent.")
    var cookieJar: String?

    /// Returns the destination of all response heads.
    func headSink() throws(ToolFailure) -> BodySink? {
        guard let headFile else { return nil }
        let sink = BodySink(path: headFile)
        try sink.begin()
        return sink
    }

    /// Writes the cookies at the end, whether or not the loads succeeded.
    func keep(_ cookies: HTTPCookieStorage?) throws(ToolFailure) {
        guard let cookieJar, let cookies else { return }
        let text = HTTPCookie.netscapeFile(cookies.cookies ?? [])
        if cookieJar == "-" { try StandardOutput.write(text) } else { try CookieFile.write(text, to: cookieJar) }
    }
}
