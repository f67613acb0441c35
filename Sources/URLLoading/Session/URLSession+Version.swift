// SPDX-License-Identifier: Apache-2.0

internal import HTTPRules

extension URLSession {
    /// The version of the library, such as "0.1.0", as the default `User-Agent` states it.
    ///
    /// Not in Apple's API, where the operating system's version identifies the implementation.
    public static var libraryVersion: String { LibraryVersion.text }
}
