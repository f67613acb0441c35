// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession cookies list`: prints a line for each cookie, sorted by domain, path and name.
struct CookieListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Shows the stored cookies, with their values.",
        discussion: "A domain with a leading dot includes its subdomains."
    )

    @Option("--domain <domain>", "Only the cookies of this domain and its subdomains.")
    var domain: String?

    @OptionGroup var output: ListOutput

    private struct Item: ListItem {
        let name: String
        let value: String
        let domain: String
        let includesSubdomains: Bool
        let path: String
        let expires: String?
        let secure: Bool
        let httpOnly: Bool
        let sameSite: String?

        static var titles: [String] { ["DOMAIN", "PATH", "EXPIRES", "FLAGS", "COOKIE"] }

        var row: [String] {
            [(includesSubdomains ? "." : "") + domain, path, expires ?? "session", flags, "\(name)=\(value)"]
        }

        private var flags: String {
            let flags = [secure ? "Secure" : nil, httpOnly ? "HttpOnly" : nil, sameSite.map { "SameSite=" + $0 }].compactMap(
                \.self)
            return flags.isEmpty ? "-" : flags.joined(separator: ",")
        }
    }

    func run() throws {
        let items = CookieSelection(domain: domain, name: nil).cookies(of: .shared).map { cookie in
            let isWide = cookie.domain.hasPrefix(".")
            return Item(
                name: cookie.name, value: cookie.value, domain: String(cookie.domain.dropFirst(isWide ? 1 : 0)),
                includesSubdomains: isWide, path: cookie.path, expires: cookie.expiresDate?.ISO8601Format(),
                secure: cookie.isSecure, httpOnly: cookie.isHTTPOnly, sameSite: cookie.sameSitePolicy?.rawValue)
        }
        try output.write(items.sorted { ($0.domain, $0.path, $0.name) < ($1.domain, $1.path, $1.name) })
    }
}
