//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import LoadingModel

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
    /// Seconds between two starts of a program, before they double.
    var launchDelay = 10.0

    /// Where sysfs is mounted.
    var sysfs = "/sys"

    /// Takes over what the environment says, for tests and for machines that are unlike others: `URLSESSIOND_SPOOL`, another folder for
    /// files that come; `URLSESSIOND_LIMIT`, how many transfers run at a time; `URLSESSIOND_PAUSE`, seconds
    /// after a first failed attempt; `URLSESSIOND_SYSFS`.
    mutating func readEnvironment(_ environment: [String: String]) {
        if let spool = environment["URLSESSIOND_SPOOL"], spool.hasPrefix("/") { spoolDirectory = spool }
        if let limit = environment["URLSESSIOND_LIMIT"].flatMap(Int.init), limit > 0 { limits.simultaneous = limit }
        if let pause = environment["URLSESSIOND_PAUSE"].flatMap(Double.init), pause > 0, pause.isFinite {
            limits.firstPause = pause
        }
        if let sysfs = environment["URLSESSIOND_SYSFS"] { self.sysfs = sysfs }
    }

    package init(stateDirectory: String) {
        self.stateDirectory = stateDirectory
    }
}
