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

        init(_ cookie: HTTPCookie) {
            name = cookie.name
            value = cookie.value
            includesSubdomains = cookie.domain.hasPrefix(".")
            domain = includesSubdomains ? String(cookie.domain.dropFirst()) : cookie.domain
            path = cookie.path
            expires = cookie.expiresDate.map { $0.ISO8601Format() }
            secure = cookie.isSecure
            httpOnly = cookie.isHTTPOnly
            sameSite = cookie.sameSitePolicy?.rawValue
        }

        static var titles: [String] { ["DOMAIN", "PATH", "EXPIRES", "FLAGS", "COOKIE"] }

        var row: [String] {
            [(includesSubdomains ? "." : "") + domain, path, expires ?? "session", flags, "\(name)=\(value)"]
        }

        private var flags: String {
            var flags: [String] = []
            if secure { flags.append("Secure") }
            if httpOnly { flags.append("HttpOnly") }
            if let sameSite { flags.append("SameSite=" + sameSite) }
            return flags.isEmpty ? "-" : flags.joined(separator: ",")
        }
    }

    func run() throws {
        let cookies = CookieSelection(domain: domain, name: nil).cookies(of: .shared)
        try output.write(cookies.map(Item.init).sorted { ($0.domain, $0.path, $0.name) < ($1.domain, $1.path, $1.name) })
    }
}
