//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// How a daemon is to be.
package struct DaemonOptions: Sendable {
    /// Where the database and, unless ``spoolDirectory`` says otherwise, the spool are.
    package var stateDirectory: String
    package var spoolDirectory: String?
    /// Seconds without anything to do after which it ends; nil for never.
    package var idleLimit: Double?
    /// Whether it takes the place of one that runs.
    package var replaces = false
    var limits = TransferScheduler.Limits()
    /// Seconds that a program which was started has to deal with its events.
    var launchPatience = 60.0
    /// Seconds that a question waits for a program that was started for it.
    var questionPatience = 120.0
    /// Seconds that a question waits for a program that cannot be started but may still run: only its connection may be lost.
    var returnPatience = 10.0
    /// Where sysfs is mounted, and how many seconds are between two looks at its power supplies.
    var sysfs = "/sys"
    var powerInterval = 30.0
    /// Seconds between two looks at a disk that has no room.
    var spaceInterval = 10.0
    /// Whether the network counts as metered, whatever the system knows of it; nil for what that says.
    var isMetered: Bool?

    /// Takes over what the environment says, for tests and for machines that are unlike others: `URLSESSIOND_SPOOL`, where another folder
    /// for files that come is made; `URLSESSIOND_LIMIT`, how many transfers run at a time; `URLSESSIOND_PAUSE`, seconds after a first failed attempt;
    /// `URLSESSIOND_PATIENCE`, seconds that a program which was started has for its events and for a question; `URLSESSIOND_METERED`, 1 or
    /// 0; `URLSESSIOND_SYSFS`; `URLSESSIOND_INTERVAL`, seconds between two looks at power supplies and at a full disk.
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
