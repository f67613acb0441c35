// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession credentials delete`: deletes the stored credentials of one server, or with `--all` those of all servers.
struct CredentialDeleteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete",
        abstract: "Deletes stored credentials.",
        discussion: "Deletes the credentials of the URL's server, or only those that match USER, --realm and --method."
    )

    @Argument(help: "A URL on the server; without a scheme, http:// is assumed.")
    var url: String?

    @Argument(help: "The user name.")
    var user: String?

    @Option("--realm <realm>", "Only credentials for this realm.")
    var realm: String?

    @Option("--method <method>", "Only credentials for this method.")
    var method: CredentialSelection.Method?

    @Flag("--all", "Delete the credentials of all servers.")
    var all = false

    func validate() throws {
        try refuse(
            if: all && (url != nil || realm != nil || method != nil),
            "--all cannot be combined with a URL, --realm or --method.")
        try refuse(if: !all && url == nil, "No credentials were selected: give a URL, or --all.")
    }

    func run() throws {
        let storage = URLCredentialStorage.shared
        let found =
            try url.map { try CredentialSelection(url: $0, realm: realm, method: method).credentials(of: user) }
            ?? CredentialSelection.all()
        for (space, credential) in found {
            storage.remove(credential, for: space, options: [NSURLCredentialStorageRemoveSynchronizableCredentials: true])
        }
        guard found.isEmpty || storage.makeDurable() else {
            throw ToolFailure(23, "nothing was deleted permanently: the credential store cannot be changed")
        }
        StandardError.print("deleted \(Count.text(found.count, "credential"))")
    }
}
