// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// `urlsession credentials`: manages the stored user names and passwords, with which the other commands answer challenges.
struct CredentialsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "credentials",
        abstract: "Shows, stores and deletes user names and passwords for servers.",
        discussion: """
            They are stored in the desktop's keyring (Secret Service) or, without one, in an encrypted file in XDG_DATA_HOME that only \
            its owner can read; the file's key is stored beside it. Passwords are never shown.
            """,
        subcommands: [CredentialListCommand.self, CredentialSetCommand.self, CredentialDeleteCommand.self]
    )
}
