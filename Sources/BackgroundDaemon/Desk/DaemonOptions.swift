// SPDX-License-Identifier: Apache-2.0

/// The options of a daemon.
package struct DaemonOptions: Sendable {
    /// The folder of the database and, unless ``spoolDirectory`` is set, of the spool.
    package var stateDirectory: String
    package var spoolDirectory: String?
    /// The idle time in seconds after which the daemon ends; nil for never.
    package var idleLimit: Double?
    /// Whether this daemon replaces a running daemon.
    package var replaces = false
    var limits = TransferScheduler.Limits()
    /// How many seconds a launched program may take to process its events.
    var launchPatience = 60.0
    /// Seconds that a question waits for a program that was launched to answer the question.
    var questionPatience = 120.0
    /// Seconds that a question waits for a program that cannot be launched but may be running: its connection may have been lost.
    var returnPatience = 10.0
    /// The mount point of sysfs, and the seconds between two checks of its power supplies.
    var sysfs = "/sys"
    var powerInterval = 30.0
    /// Seconds between two checks of the clock, if transfers are limited to hours of the day.
    var hoursInterval = 30.0
    /// Seconds between two checks of a full disk.
    var spaceInterval = 10.0
    /// Whether the network counts as metered, whatever the system reports; nil to use the system's report.
    var isMetered: Bool?

    /// Reads options from the environment, for tests and unusual machines.
    ///
    /// - `URLSESSIOND_SPOOL`: the folder in which the spool is created;
    /// - `URLSESSIOND_LIMIT`: the number of concurrent transfers;
    /// - `URLSESSIOND_PAUSE`: the maximum pause after a first failed attempt, in seconds;
    /// - `URLSESSIOND_PATIENCE`: the number of seconds that a launched program has for its events and for a question;
    /// - `URLSESSIOND_METERED`: 1 or 0;
    /// - `URLSESSIOND_SYSFS`: the mount point of sysfs;
    /// - `URLSESSIOND_INTERVAL`: the number of seconds between two checks of the power supplies, of a full disk and of the clock.
    mutating func readEnvironment(_ environment: [String: String]) {
        if let spool = environment["URLSESSIOND_SPOOL"], spool.hasPrefix("/") { spoolDirectory = spool + "/urlloading-spool" }
        if let limit = environment["URLSESSIOND_LIMIT"].flatMap(Int.init), limit > 0 { limits.simultaneous = limit }
        if let pause = Self.seconds(environment["URLSESSIOND_PAUSE"]) { limits.firstPause = pause }
        if let patience = Self.seconds(environment["URLSESSIOND_PATIENCE"]) {
            launchPatience = patience
            questionPatience = patience
            returnPatience = min(returnPatience, patience)
        }
        if let metered = environment["URLSESSIOND_METERED"] { isMetered = metered == "1" }
        if let sysfs = environment["URLSESSIOND_SYSFS"] { self.sysfs = sysfs }
        if let interval = Self.seconds(environment["URLSESSIOND_INTERVAL"]) {
            powerInterval = interval
            hoursInterval = interval
            spaceInterval = interval
        }
    }

    private static func seconds(_ text: String?) -> Double? {
        text.flatMap(Double.init).flatMap { $0 > 0 && $0.isFinite ? $0 : nil }
    }

    package init(stateDirectory: String) {
        self.stateDirectory = stateDirectory
    }
}
