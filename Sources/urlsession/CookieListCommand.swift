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

/// `urlsession cookies list`: a line for each cookie, by domain, path and name.
struct CookieListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Shows the stored cookies, with their values.",
        discussion: "A domain with a dot in front stands for its subdomains, too."
    )

    @Option(help: ArgumentHelp("Only the cookies of this domain and its subdomains.", valueName: "domain"))
    var domain: String?

    @Flag(help: "Show them as JSON.")
    var json = false

    /// What a program reads.
    private struct Item: Encodable {
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
    }

    func run() throws {
        let cookies = CookieSelection(domain: domain, name: nil).cookies(of: .shared).sorted { one, other in
            (bare(one.domain), one.path, one.name) < (bare(other.domain), other.path, other.name)
        }
        try StandardOutput.write(json ? JSONText.of(cookies.map(Item.init)) : TextTable.text(cookies.map(row)))
    }

    private func row(_ cookie: HTTPCookie) -> [String] {
        var flags: [String] = []
        if cookie.isSecure { flags.append("Secure") }
        if cookie.isHTTPOnly { flags.append("HttpOnly") }
        if let policy = cookie.sameSitePolicy { flags.append("SameSite=" + policy.rawValue) }
        return [
            cookie.domain, cookie.path, cookie.expiresDate.map { $0.ISO8601Format() } ?? "session",
            flags.isEmpty ? "-" : flags.joined(separator: ","), "\(cookie.name)=\(cookie.value)",
        ]
    }

    private func bare(_ domain: String) -> String { domain.hasPrefix(".") ? String(domain.dropFirst()) : domain }
}
