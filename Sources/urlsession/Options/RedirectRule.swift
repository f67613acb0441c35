//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Which redirects are followed: `--no-location` and `--max-redirs`.
struct RedirectRule: Sendable {
    var follows = true
    var most: Int?

    /// Whether to follow a load's redirect of this number, from 1 on.
    ///
    /// Throws where it is one too many.
    func admits(_ number: Int) throws(ToolFailure) -> Bool {
        guard follows else { return false }
        if let most, number > most { throw ToolFailure(47, "more than \(most) redirects") }
        return true
    }
}
