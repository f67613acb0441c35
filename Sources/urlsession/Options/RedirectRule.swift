//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// Which redirects are followed: `--no-location`, `--max-redirs`, `--proto` and `--proto-redir`.
struct RedirectRule: Sendable {
    var follows = true
    var most: Int?
    /// What is said of every URL, and of those that redirects lead to.
    var schemes: SchemeRule?
    var redirectSchemes: SchemeRule?

    /// Whether to follow a load's redirect of this number, from 1 on.
    ///
    /// Throws where it is one too many, or leads to a protocol that is not allowed.
    func admits(_ number: Int, to url: URL?) throws(ToolFailure) -> Bool {
        guard follows else { return false }
        if let most, number > most { throw ToolFailure(47, "more than \(most) redirects") }
        try schemes?.check(url, option: "--proto")
        try redirectSchemes?.check(url, option: "--proto-redir")
        return true
    }
}
