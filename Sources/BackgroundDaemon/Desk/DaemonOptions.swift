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

    package init(stateDirectory: String) {
        self.stateDirectory = stateDirectory
    }
}
