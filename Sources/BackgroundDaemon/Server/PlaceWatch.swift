// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import CLoadingSystem
import LibC
import NIOCore
import Synchronization
import SystemThreads

/// Makes a running daemon's files again if they are removed: its locks, its socket, and its list of transfers.
///
/// Also notices when the clock is set. A thread waits for the kernel's reports, so that an idle daemon never wakes.
final class PlaceWatch: Sendable {
    /// Seconds after which mending is tried again.
    private static let pause = 5.0
    /// Seconds between a removal and mending: a service manager that removes a socket makes its own one at once.
    private static let patience = 0.5

    /// Distinguishes a socket from other files that have had the same path.
    private struct SocketFacts: Hashable {
        var device: UInt64
        var inode: UInt64
        var changed: Int64
    }

    private struct State {
        /// The socket that this daemon has made at its path; nil if it has made none.
        var socket: SocketFacts?
        var channel: (any Channel)?
        var isOver = false
        var trouble: String?
    }

    private let state = Mutex(State())
    private let server: SocketServer
    private let place: DaemonPlace
    private let locks: DaemonLocks
    private let desk: TransferDesk
    private var folders: [String] { [place.directory, desk.options.stateDirectory] }

    init(_ server: SocketServer, _ place: DaemonPlace, _ locks: DaemonLocks, _ desk: TransferDesk) {
        self.server = server
        self.place = place
        self.locks = locks
        self.desk = desk
    }

    /// Listens at the daemon's path.
    func listen() throws {
        try state.withLock { state in
            guard !state.isOver else { return }
            let channel = try server.listen(at: place)
            // The socket that is closed has no name any more, so no program can wait at it.
            state.channel?.close(promise: nil)
            state.channel = channel
            state.socket = facts
        }
    }

    private var facts: SocketFacts? {
        var facts = cls_file_facts()
        guard cls_path_facts(place.socket, &facts) == 0 else { return nil }
        return SocketFacts(device: facts.device, inode: facts.inode, changed: facts.changed)
    }

    /// Stops mending, and removes the socket if it is this daemon's: by now the path may belong to another process, for example a
    /// service manager.
    func end() {
        let isOwn = state.withLock { state in
            state.isOver = true
            return state.socket != nil && state.socket == facts
        }
        if isOwn { unlink(place.socket) }
    }

    // MARK: Watching

    /// Starts the thread, which runs until the process ends.
    func begin() {
        let (names, clock) = (cls_names_watch(), cls_clock_watch())
        if names < 0 { desk.journal.log(.warning, "removed files are not noticed at once: \(String(cString: strerror(-names)))") }
        if clock < 0 { desk.journal.log(.warning, "a set clock is not noticed at once: \(String(cString: strerror(-clock)))") }
        guard names >= 0 || clock >= 0 else { return }
        _ = Threads.start("bg-place") { self.run(names, clock) }
    }

    private func run(_ names: CInt, _ clock: CInt) {
        let watched = [names, clock].filter { $0 >= 0 }
        // What was removed before the folders are watched is found now.
        var time: Double? = Monitor.clock + Self.patience
        watch(names)
        while true {
            let milliseconds = time.map { CInt(max(0, ($0 - Monitor.clock) * 1000).rounded(.up)) } ?? -1
            let ready = cls_wait_any(watched, CInt(watched.count), milliseconds)
            for (index, descriptor) in watched.enumerated() where ready & (1 << index) != 0 {
                cls_watch_clear(descriptor)
                if descriptor == clock {
                    desk.enter { $0.clockWasSet() }
                } else {
                    time = min(time ?? .infinity, Monitor.clock + Self.patience)
                }
            }
            guard let due = time, due <= Monitor.clock else { continue }
            let isMended = mend()
            // What an attempt to mend has made and removed must not cause the next one at once.
            if !isMended, names >= 0 { cls_watch_clear(names) }
            // A folder that was removed and made again is another one.
            time = isMended && watch(names) ? nil : Monitor.clock + Self.pause
        }
    }

    /// - Returns: Whether all folders are watched.
    @discardableResult
    private func watch(_ names: CInt) -> Bool {
        folders.allSatisfy { cls_names_watch_add(names, $0) == 0 }
    }

    /// Makes again what was removed.
    ///
    /// - Returns: Whether everything is in its place.
    private func mend() -> Bool {
        guard !state.withLock({ $0.isOver }) else { return true }
        do throws(StorageFailure) {
            // Another daemon that has the locks uses the same files.
            guard try mendLocks() else {
                desk.enter { $0.beginAnew(because: "Another urlsessiond may have been started.") }
                return true
            }
            let isListInPlace = mendList()
            try mendPlace()
            return isListInPlace
        } catch {
            let isNew = state.withLock { state in
                defer { state.trouble = error.reason }
                return state.trouble != error.reason
            }
            if isNew { desk.journal.log(.error, error.reason) }
            return false
        }
    }

    /// - Returns: Whether this daemon holds its locks.
    private func mendLocks() throws(StorageFailure) -> Bool {
        guard !locks.areInPlace else { return true }
        if let trouble = place.prepare() { throw .failed(trouble) }
        try DaemonLocks.makeFolder(desk.options.stateDirectory)
        guard try locks.renew() else { return false }
        desk.journal.log(.error, "the lock of urlsessiond was removed, and was made again")
        return true
    }

    /// Waits until the store has written the list of transfers again, if that is necessary.
    private func mendList() -> Bool {
        let end = BlockingPromise()
        desk.store.apply([]) { [desk] result in
            // Without a change, a success says nothing about the changes that failed.
            guard case .failure(let failure) = result else { return end.fulfill("") }
            desk.enter { $0.noteStorage(result) }
            end.fulfill(failure.reason)
        }
        return end.wait().isEmpty
    }

    private func mendPlace() throws(StorageFailure) {
        let folder = desk.options.stateDirectory
        try state.withLock { state throws(StorageFailure) in
            // The next daemon removes the note, and writes its own.
            guard !state.isOver, DaemonPlace.notedSocket(in: folder) != place.socket else { return }
            let note = DaemonPlace.note(in: folder)
            let error = SmallFile.replace(note, with: Array(place.socket.utf8))
            guard error == 0 else { throw StorageFailure(error, "The file \(note) cannot be created") }
        }
        // Another socket at the path is a service manager's, which will start a daemon that takes over.
        guard facts == nil, !state.withLock({ $0.isOver }) else { return }
        do {
            try listen()
        } catch {
            throw StorageFailure(error)
        }
        desk.journal.log(.error, "the socket \(place.socket) was removed, and was made again")
    }
}
