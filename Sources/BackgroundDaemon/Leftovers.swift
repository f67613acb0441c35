// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import CLoadingSystem
import FoundationEssentials
import LibC

/// Files that killed daemons and programs left beside the socket and the state.
enum Leftovers {
    /// The age in seconds at which a file of events is a leftover: by then, the launched program has read the file.
    private static let eventsLifetime = 60.0
    /// The age in seconds at which a file of reserved task numbers is a leftover, unless the daemon has the session.
    private static let numbersLifetime = 30 * 86_400.0
    /// The prefix of Foundation's temporary files.
    private static let temporaryPrefix = ".dat.nosync"

    /// Removes the leftovers, except files that a live process may be about to write.
    static func remove(_ place: DaemonPlace, _ stateDirectory: String, _ contents: TransferStore.Contents) {
        // For an unreadable session, the program and identifier are unknown, and so is the name of its file of losses.
        let isAllKnown = contents.damagedSessions.isEmpty
        let numbers = Set(contents.sessions.map { DaemonPlace.numbersName(of: $0.identifier, in: $0.program) })
        let losses = Set(contents.sessions.map { DaemonPlace.lossesName(of: $0.identifier, in: $0.program) })
        let written = [
            "urlsessiond.socket.", "urlsessiond.place.", "urlsessiond.room.", "lost-", "numbers-", "events-", "terms.json.",
        ]
        for folder in Set([place.directory, stateDirectory]) {
            for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
                let path = folder + "/" + name
                let isObsolete =
                    SmallFile.isLeftover(name, of: written) || name == "urlsessiond.room"
                    || name.hasPrefix(temporaryPrefix) && isOld(path)
                    || name.hasPrefix("events-") && !name.contains(".") && isOld(path)
                    // Losses of a session that the daemon does not have no longer matter.
                    || isAllKnown && folder == stateDirectory && name.hasPrefix("lost-") && !name.contains(".")
                        && !losses.contains(name) && isOld(path)
                    || isAllKnown && name.hasPrefix("numbers-") && !name.contains(".") && !numbers.contains(name)
                        && isOld(path, lifetime: numbersLifetime)
                if isObsolete { unlink(path) }
            }
        }
    }

    private static func isOld(_ path: String, lifetime: Double = eventsLifetime) -> Bool {
        var facts = cls_file_facts()
        guard cls_path_facts(path, &facts) == 0 else { return false }
        return abs(Double(time(nil)) - Double(facts.changed) / 1e9) > lifetime
    }
}
