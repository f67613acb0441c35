// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import URLLoading

/// `urlsession cookies delete`: deletes the stored cookies that `--domain` and `--name` select, or all cookies with `--all`.
struct CookieDeleteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete",
        abstract: "Deletes stored cookies.",
        discussion: "With both --domain and --name, cookies that match both are deleted."
    )

    @Option("--domain <domain>", "Delete the cookies of this domain and its subdomains.")
    var domain: String?

    @Option("--name <name>", "Delete the cookies with this name.")
    var name: String?

    @Flag("--all", "Delete all cookies.")
    var all = false

    func validate() throws {
        try refuse(if: all && (domain != nil || name != nil), "--all cannot be combined with --domain or --name.")
        try refuse(if: !all && domain == nil && name == nil, "No cookies were selected: give --domain, --name or --all.")
    }

    func run() throws {
        let cookies = CookieSelection(domain: domain, name: name).cookies(of: .shared)
        for cookie in cookies {
            HTTPCookieStorage.shared.deleteCookie(cookie)
        }
        guard cookies.isEmpty || HTTPCookieStorage.shared.makeDurable() else {
            throw ToolFailure(23, "no cookies were deleted permanently: the cookie store cannot be changed")
        }
        StandardError.print("deleted \(Count.text(cookies.count, "cookie"))")
    }
}
