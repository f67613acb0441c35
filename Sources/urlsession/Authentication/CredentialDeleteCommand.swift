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

/// `urlsession credentials delete`: deletes stored credentials; all of them only with `--all`.
struct CredentialDeleteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete",
        abstract: "Deletes stored credentials.",
        discussion: "USER, --realm and --method narrow what is deleted of those of the URL's server."
    )

    @Argument(help: "A URL at the server; http:// where there is no scheme.")
    var url: String?

    @Argument(help: "The user name.")
    var user: String?

    @Option(help: ArgumentHelp("Only those of this realm.", valueName: "realm"))
    var realm: String?

    @Option(help: "Only those by this method.")
    var method: CredentialSelection.Method?

    @Flag(help: "Delete all credentials, whatever they are for.")
    var all = false

    func validate() throws {
        if all, url != nil || realm != nil || method != nil {
            throw ValidationError("--all excludes a URL, --realm and --method.")
        }
        if !all, url == nil {
            throw ValidationError("Which credentials? Say a URL, or --all.")
        }
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
            throw ToolFailure(23, "nothing is deleted for good: what is stored cannot be changed")
        }
        StandardError.print("deleted \(Count.text(found.count, "credential"))")
    }
}
