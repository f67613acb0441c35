//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
internal import SystemLibraries

/// What was found of a C library that is used where the system has it.
///
/// Not in Apple's API, whose system has everything.
public struct SystemLibraryReport: Sendable, Hashable {
    /// The name that it is usually looked for under, as in "libsecret-1.so.0".
    public let name: String
    /// Where it is, or nil where it cannot be used.
    public let path: String?
    /// Why it cannot be used.
    public let failure: String?

    /// Looks for all of them; the first time that takes as long as opening them does.
    ///
    /// - Returns: One for each library.
    public static func all() -> [SystemLibraryReport] {
        SystemLibrary.report.map { SystemLibraryReport(name: $0.name, path: $0.path, failure: $0.failure) }
    }
}
