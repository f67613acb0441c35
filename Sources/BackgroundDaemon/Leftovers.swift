//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundProtocol
import CLoadingSystem
import FoundationEssentials

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// Files that killed daemons and programs have left beside the socket and the state.
enum Leftovers {
    /// Seconds after which no program reads its launch events from a file.
    private static let eventsLife = 60.0
    /// The suffix of Foundation's temporary files.
    private static let asideMark = ".dat.nosync"

    /// Removes them: only this user's files, and none that a live process is about to write.
    static func remove(_ place: DaemonPlace, _ stateDirectory: String, _ contents: TransferStore.Contents) {
        // The program and identifier of an unreadable session are not known.
        let isAllKnown = contents.damagedSessions.isEmpty
        let losses = Set(contents.sessions.map { DaemonPlace.lossesName(of: $0.identifier, in: $0.program) })
        let written = ["urlsessiond.socket.", "urlsessiond.place.", "urlsessiond.room.", "lost-", "events-", "terms.json."]
        for folder in Set([place.directory, stateDirectory]) {
            for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
                let path = folder + "/" + name
                let isLeft =
                    SmallFile.isLeftover(name, of: written) || name == "urlsessiond.room"
                    || name.hasPrefix(asideMark) && isOld(path)
                    || name.hasPrefix("events-") && !name.contains(".") && isOld(path)
                    // Losses of a session that the daemon does not have are irrelevant.
                    || isAllKnown && folder == stateDirectory && name.hasPrefix("lost-") && !name.contains(".")
                        && !losses.contains(name) && isOld(path)
                if isLeft { unlink(path) }
            }
        }
    }

    private static func isOld(_ path: String) -> Bool {
        var facts = cls_file_facts()
        guard cls_path_facts(path, &facts) == 0 else { return false }
        return abs(Double(time(nil)) - Double(facts.changed) / 1e9) > eventsLife
    }
}
