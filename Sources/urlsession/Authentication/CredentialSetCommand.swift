// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession credentials set`: stores a credential; the password comes from the terminal or from standard input, never from the
/// command line.
struct CredentialSetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Stores a user name and a password for a server.",
        discussion: """
            The password is read from the terminal without echo. The credential answers any challenge of the URL's server; --realm and \
            --method narrow that. A credential that was stored for the same user is replaced.
            """
    )

    @Argument(help: "A URL on the server; without a scheme, http:// is assumed.")
    var url: String

    @Argument(help: "The user name.")
    var user: String

    @Option("--realm <realm>", "Only for this realm of the server.")
    var realm: String?

    @Option("--method <method>", "Only for this method.")
    var method: CredentialSelection.Method?

    @Flag("--password-stdin", "Read the password from standard input: one line.")
    var readsPassword = false

    func validate() throws {
        if user.isEmpty || user.contains(":") {
            // RFC 7617, section 2: the part after a colon would be sent as the password.
            throw ValidationError(
                "A user name must not be empty or contain a colon. Do not give the password here: you are asked for it.")
        }
    }

    func run() throws {
        let selection = try CredentialSelection(url: url, realm: realm, method: method)
        let password =
            try readsPassword
            ? PasswordPrompt.readStandardInput()
            : PasswordPrompt.ask("Enter the password of '\(user)' at \(selection.place.host)")
        let storage = URLCredentialStorage.shared
        storage.set(URLCredential(user: user, password: password, persistence: .permanent), for: selection.space)
        guard storage.makeDurable(), storage.credentials(for: selection.space)?[user]?.persistence == .permanent else {
            throw ToolFailure(23, "the password was not stored: the credential store cannot be changed")
        }
        StandardError.print("stored the password of '\(user)' at \(selection.place.host)")
    }
}
