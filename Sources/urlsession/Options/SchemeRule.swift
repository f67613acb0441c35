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

/// Which schemes may be loaded, as curl's `--proto` says it: names after `+` to allow them, too, `-` to refuse them, `=` to allow them
/// alone; `all` stands for every one.
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

    /// - Parameters:
    ///   - url: What is to be loaded.
    ///   - option: The name of the option that says this.
    /// - Throws: Where it may not be.
    func check(_ url: URL?, option: String) throws(ToolFailure) {
        let scheme = url?.scheme?.lowercased() ?? ""
        guard !allowed.contains(scheme) else { return }
        throw ToolFailure(1, "\(TextTable.harmless(scheme)) is not among the protocols that \(option) allows")
    }
}
