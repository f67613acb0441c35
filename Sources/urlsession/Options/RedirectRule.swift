// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The redirects to follow: `--no-location`, `--max-redirs`, `--proto` and `--proto-redir`.
struct RedirectRule: Sendable {
    var follows = true
    var most: Int?
    /// The permitted schemes of all URLs; `redirectSchemes` applies only to redirects.
    var schemes: SchemeRule?
    var redirectSchemes: SchemeRule?

    /// Whether to follow a load's redirect; the first redirect has the number 1.
    ///
    /// Throws if there are too many redirects, or the scheme is not permitted.
    func allows(_ number: Int, to url: URL?) throws(ToolFailure) -> Bool {
        guard follows else { return false }
        if let most, number > most { throw ToolFailure(47, "more than \(most) redirects") }
        try schemes?.check(url, option: "--proto")
        try redirectSchemes?.check(url, option: "--proto-redir")
        return true
    }
}
