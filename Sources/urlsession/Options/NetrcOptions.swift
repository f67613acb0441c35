// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation

/// The options for reading logins from a `.netrc` file.
struct NetrcOptions: ParsableArguments {
    @Flag("--netrc -n", "Take user names and passwords from ~/.netrc, instead of the URL; each host gets only its own.")
    var netrc = false

    @Flag("--netrc-optional", "The same, if the URL has no password.")
    var isOptional = false

    @Option("--netrc-file <file>", "The same, from this file.")
    var file: String?

    /// Returns the file's content; nil if none of the options is given, or ~/.netrc does not exist.
    func read() throws(ToolFailure) -> Netrc? {
        guard netrc || isOptional || file != nil else { return nil }
        return try Netrc.read(file ?? Netrc.usualPath, mayBeMissing: file == nil)
    }

    /// Returns the login for a URL's server.
    func login(in netrc: Netrc?, at url: URL) -> Login? {
        let named = Login(userOf: url)
        guard let netrc, let host = url.host() else { return named }
        guard isOptional else { return netrc.login(at: host, takesDefault: true) }
        if let named, !named.password.isEmpty { return named }
        return netrc.login(at: host, user: named?.user, takesDefault: true) ?? named
    }
}
