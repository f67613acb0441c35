//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import HTTPRules

extension URLSession {
    /// The version of the library, such as "0.1.0", as it is in the default `User-Agent`.
    ///
    /// Not in Apple's API, whose system has the version of the operating system.
    public static var libraryVersion: String { LibraryVersion.text }
}
