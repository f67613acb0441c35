// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession cookies export`: writes the stored cookies to a file for `curl -b`.
struct CookieExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Writes the stored cookies as a cookies.txt file.",
        discussion: "The file has Netscape's format, which curl reads with --cookie, and is readable only by its owner."
    )

    @Argument(help: "The file; - or nothing for standard output.", completion: .file())
    var file = "-"

    func run() throws {
        let cookies = HTTPCookieStorage.shared.cookies ?? []
        let text = HTTPCookie.netscapeFile(cookies)
        if file == "-" {
            try StandardOutput.write(StandardOutput.isTerminal ? TextTable.sanitized(text, keeping: ["\n", "\t"]) : text)
        } else {
            try CookieFile.write(text, to: file)
        }
        let leftOut = cookies.count - CookieFile.cookieLines(of: text).count
        if leftOut > 0 {
            StandardError.print("\(Count.text(leftOut, "cookie")) left out: cookies.txt cannot represent tabs and partitions")
        }
    }
}
