// SPDX-License-Identifier: Apache-2.0

extension URLSessionConfiguration {
    /// How the daemon launches a program when one of its background sessions has events.
    ///
    /// The program handles the events in ``URLSession/handleEventsForBackgroundURLSession(_:)``.
    public enum BackgroundLaunch: Sendable, Hashable {
        /// The absolute path of an executable, followed by its arguments; and the working directory, by default the root directory.
        case arguments([String], directory: String? = nil)
        /// A unit of the user's service manager, such as `backup.service`.
        case systemdUnit(String)
        /// A D-Bus name on the session bus for which a service file exists.
        case dBusName(String)
    }

    /// How the daemon launches this program when the tasks of a background session have finished, or a task needs a decision.
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
