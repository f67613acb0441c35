// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession cookies import`: stores the cookies of a file that `curl -c` or a browser add-on has written.
struct CookieImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Adds the cookies of a cookies.txt file to the stored ones.",
        discussion: """
            The file has Netscape's format, which curl writes with --cookie-jar. Cookies with the same name, domain and path are \
            replaced. Session cookies (those that expire at 0) would end with this command, and are left out; get -b FILE sends them.
            """
    )

    @Argument(help: "The file; - for standard input.", completion: .file())
    var file: String

    func run() throws {
        let text = try CookieFile.read(file)
        let found = HTTPCookie.cookies(netscapeFile: text)
        let lines = CookieFile.cookieLines(of: text)
        guard !found.isEmpty || lines.isEmpty || lines.contains(where: CookieFile.isLikely) else {
            throw ToolFailure(26, "\(CookieFile.name(file)) is not a cookies.txt file")
        }
        let storage = HTTPCookieStorage.shared
        let cookies = found.filter { !$0.isSessionOnly }
        for cookie in cookies {
            storage.setCookie(cookie)
        }
        let refused = Self.missing(cookies, in: storage)
        guard cookies.isEmpty || storage.makeDurable() else {
            throw ToolFailure(23, "no cookies were imported: the cookie store cannot be changed")
        }
        StandardError.print("imported \(Count.text(Set(cookies.map(Self.identity)).count - refused, "cookie"))")
        report(found.count - cookies.count, "session cookie", "left out: they would end with this command")
        report(lines.count - found.count, "line", "left out: not a cookie, or expired")
        report(refused, "cookie", "refused: for a public suffix, violating a name prefix, or exceeding the limits")
    }

    private func report(_ count: Int, _ noun: String, _ text: String) {
        if count > 0 {
            StandardError.print("\(Count.text(count, noun)) \(text)")
        }
    }

    private static func missing(_ cookies: [HTTPCookie], in storage: HTTPCookieStorage) -> Int {
        let kept = Set((storage.cookies ?? []).map(identity))
        return Set(cookies.map(identity)).subtracting(kept).count
    }

    private static func identity(_ cookie: HTTPCookie) -> [String] { [cookie.name, cookie.domain, cookie.path] }
}
