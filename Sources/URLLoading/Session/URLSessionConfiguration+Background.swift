//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extension URLSessionConfiguration {
    /// How the daemon launches a program when one of its background sessions has events.
    ///
    /// The program handles them in ``URLSession/handleEventsForBackgroundURLSession(_:)``.
    public enum BackgroundLaunch: Sendable, Hashable {
        /// An executable with its arguments, the absolute path first, and a working directory, by default the root directory.
        case arguments([String], directory: String? = nil)
        /// A unit of the user's service manager, such as `backup.service`.
        case systemdUnit(String)
        /// A bus name on the session bus that has a service file.
        case dBusName(String)
    }

    /// How the daemon launches this program when the tasks of a background session have finished, or one needs a decision.
    ///
    /// Default nil: the daemon does not launch the program, which receives the events when it next makes the session. The daemon
    /// records the value when the session is made.
    ///
    /// Not in Apple's API, where the system knows how to launch an app.
    public var backgroundLaunch: BackgroundLaunch? {
        get { get { $0.background.launch } }
        set { set { $0.background.launch = newValue } }
    }
}
