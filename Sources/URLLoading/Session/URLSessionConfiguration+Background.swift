//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extension URLSessionConfiguration {
    /// How the daemon starts a program when a background session has something to tell.
    ///
    /// The program finds out by ``URLSession/handleEventsForBackgroundURLSession(_:)``.
    public enum BackgroundLaunch: Sendable, Hashable {
        /// A program's file, by its absolute path, and its arguments; and where it runs, by default in the root directory.
        case arguments([String], directory: String? = nil)
        /// A unit of the user's service manager, as in `backup.service`.
        case systemdUnit(String)
        /// A name on the session bus that a service file has.
        case dBusName(String)
    }

    /// How the daemon starts this program when a background session's tasks are done, or one needs a decision.
    ///
    /// Default nil: it is not started, and told when it makes the session the next time. Recorded when the session is made.
    ///
    /// Not in Apple's API, where the system knows how to start an app.
    public var backgroundLaunch: BackgroundLaunch? {
        get { get { $0.background.launch } }
        set { set { $0.background.launch = newValue } }
    }
}
