// SPDX-License-Identifier: Apache-2.0

internal import SystemLibraries

/// The availability of a C library that is used if it is installed.
///
/// Not in Apple's API: Apple's systems have all of the libraries.
public struct SystemLibraryReport: Sendable, Hashable {
    /// The usual file name of the library, such as "libsecret-1.so.0".
    public let name: String
    /// The path of the library, or nil if it cannot be used.
    public let path: String?
    /// The reason why the library cannot be used.
    public let failure: String?
    /// What to do about it, if that is known.
    package let advice: String?

    /// Looks for all optional libraries.
    ///
    /// The first call opens them, which takes some time.
    ///
    /// - Returns: One report per library.
    public static func all() -> [SystemLibraryReport] {
        SystemLibrary.report.map {
            SystemLibraryReport(name: $0.name, path: $0.path, failure: $0.failure, advice: $0.advice)
        }
    }
}
