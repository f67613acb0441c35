// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation

/// The permitted schemes in the syntax of curl's `--proto`.
///
/// Names after `+` are added, names after `-` are removed, and names after `=` replace all others; `all` stands for all schemes.
struct SchemeRule: Sendable, ExpressibleByArgument {
    private static let known: Set = ["http", "https", "ftp", "ftps", "file", "data", "ws", "wss"]

    private var allowed = known

    init?(argument: String) {
        for word in argument.split(separator: ",") {
            let sign = word.first.flatMap { "+-=".contains($0) ? $0 : nil }
            let name = (sign == nil ? String(word) : String(word.dropFirst())).lowercased()
            guard !name.isEmpty else { return nil }
            let named = name == "all" ? Self.known : [name]
            switch sign {
            case "-": allowed.subtract(named)
            case "=": allowed = named
            default: allowed.formUnion(named)
            }
        }
    }

    /// Checks that a URL may be loaded.
    ///
    /// - Parameters:
    ///   - url: The URL to load.
    ///   - option: The name of the option that sets the rule.
    /// - Throws: If the scheme is not permitted.
    func check(_ url: URL?, option: String) throws(ToolFailure) {
        let scheme = url?.scheme?.lowercased() ?? ""
        guard !allowed.contains(scheme) else { return }
        throw ToolFailure(1, "\(TextTable.sanitized(scheme)) is not among the protocols that \(option) allows")
    }
}
