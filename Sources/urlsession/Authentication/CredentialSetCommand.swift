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

/// `urlsession credentials set`: stores a credential; the password comes from the terminal or from standard input, never from the
/// command line.
struct CredentialSetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Keeps a user name and a password for a server.",
        discussion: """
            The password is asked for at the terminal, which does not show it. They answer whatever the server of the URL asks \
            for; --realm and --method narrow that. One that was kept for the same user is replaced.
            """
    )

    @Argument(help: "A URL at the server; http:// where there is no scheme.")
    var url: String

    @Argument(help: "The user name.")
    var user: String

    @Option(help: ArgumentHelp("For this realm of the server alone.", valueName: "realm"))
    var realm: String?

    @Option(help: "By this method alone.")
    var method: CredentialSelection.Method?

    @Flag(name: .customLong("password-stdin"), help: "Read the password from standard input: one line.")
    var readsPassword = false

    func validate() throws {
        if user.isEmpty || user.contains(":") {
            // RFC 7617, section 2: the part after a colon would be sent as the password.
            throw ValidationError("A user name has no colon, and the password is not said here: it is asked for.")
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
            throw ToolFailure(23, "the password is not kept: it cannot be stored, and would end with this very command")
        }
        StandardError.print("kept a password for '\(user)' at \(selection.place.host)")
    }
}
