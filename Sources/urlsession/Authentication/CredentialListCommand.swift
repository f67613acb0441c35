// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession credentials list`: prints a line for each stored credential, sorted by server, without the password.
struct CredentialListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Shows which credentials are stored, without their passwords.",
        discussion: """
            The columns are the server, the method, the realm, how long the credential is kept, and the user. A realm of - means that \
            there is none; the method any matches every method that the server requests.
            """
    )

    @OptionGroup var output: ListOutput

    private struct Item: ListItem {
        let url: String
        let host: String
        let port: Int
        let isProxy: Bool
        let method: String
        let realm: String?
        let user: String
        let persistence: String

        static var titles: [String] { ["SERVER", "METHOD", "REALM", "KEPT", "USER"] }

        var row: [String] { [(isProxy ? "proxy " : "") + url, method, realm ?? "-", persistence, user] }
    }

    func run() throws {
        let items = CredentialSelection.all().map { space, credential in
            Item(
                url: Self.address(space), host: space.host, port: space.port, isProxy: space.isProxy(),
                method: StoredCredentials.name(ofMethod: space.authenticationMethod), realm: space.realm,
                user: credential.user ?? "", persistence: Self.name(of: credential.persistence))
        }
        try output.write(items.sorted { $0.row.lexicographicallyPrecedes($1.row) })
    }

    private static func name(of persistence: URLCredential.Persistence) -> String {
        switch persistence {
        case .none: "none"
        case .forSession: "session"
        case .permanent: "permanent"
        case .synchronizable: "synchronizable"
        }
    }

    private static func address(_ space: URLProtectionSpace) -> String {
        let host = space.host.contains(":") ? "[\(space.host)]" : space.host
        return "\((space.protocol ?? space.proxyType).map { $0 + "://" } ?? "")\(host):\(space.port)"
    }
}
