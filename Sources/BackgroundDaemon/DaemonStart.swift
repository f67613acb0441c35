// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import CLoadingSystem
import FoundationEssentials
import LibC
import NIOCore
import SystemThreads

/// Why a daemon does not start.
enum StartFailure: Error {
    /// Another daemon is running, and responds.
    case another
    /// Another daemon is running and does not respond; that daemon may still respond to a daemon that is started later.
    case unresponsive(String)
    /// An exit status, and the reason.
    case failed(Int32, String)
    /// A signal was received.
    case signal(CInt)
}

/// The startup of a daemon: takes the locks, waits while the disk is full, and tells waiting programs why.
final class DaemonStart {
    /// How many seconds a replaced daemon may take to end.
    private static let patience = 30.0
    /// How many seconds to wait for another daemon that may be starting or ending.
    private static let endPatience = 10.0
    /// How many consecutive checks must agree that a daemon is listening, or that none is: the state may be about to change.
    private static let requiredChecks = (listening: 4, notListening: 2)
    /// How many bytes must fit on the disk before the startup is retried.
    private static let probeSize = 64 << 10
    private static let longestPause = 60.0
    /// A daemon that has to begin anew within this many seconds of the last time ends instead: its disk does not keep its files.
    private static let shortestLife = 5.0
    /// The environment variable that tells a process that it begins anew: the time in seconds since boot, and why.
    private static let anewVariable = "URLSESSIOND_BEGINS_ANEW"

    let journal: Journal
    let place: DaemonPlace
    let stateDirectory: String
    /// The socket on which systemd listens for this daemon.
    let inherited: CInt?
    let replaces: Bool
    /// The blocked signals that end the daemon.
    let signals: sigset_t
    /// The seconds between two checks of a full disk.
    let interval: Double
    let locks = DaemonLocks()
    /// The reported reason why the startup is waiting; empty if the startup is not waiting.
    private var reason = ""
    private let reports: Bool
    /// Why this process has begun anew, for the user; nil if it has not.
    let trouble: String?
    private let lastBegin: Double

    init(_ journal: Journal, _ options: DaemonOptions, _ signals: sigset_t) {
        self.journal = journal
        place = DaemonPlace()
        stateDirectory = options.stateDirectory
        inherited = Self.inheritedSocket()
        replaces = options.replaces || inherited != nil
        self.signals = signals
        interval = options.spaceInterval
        reports = ProcessInfo.processInfo.environment[StartupMessage.variable] != nil
        let anew = ProcessInfo.processInfo.environment[Self.anewVariable]?.split(separator: " ", maxSplits: 1)
        lastBegin = anew?.first.flatMap { Double($0) } ?? -.infinity
        trouble = anew.flatMap { $0.count > 1 ? String($0[1]) : nil }
        // Child processes must not report to the waiting program.
        unsetenv(StartupMessage.variable)
        unsetenv(Self.anewVariable)
    }

    /// Returns the socket on which systemd listens for this daemon (sd_listen_fds(3)).
    private static func inheritedSocket() -> CInt? {
        let environment = ProcessInfo.processInfo.environment
        guard environment["LISTEN_PID"].flatMap(Int32.init) == getpid(), let count = environment["LISTEN_FDS"].flatMap(Int.init),
            count >= 1
        else { return nil }
        return 3
    }

    // MARK: Locks

    /// Locks the socket's folder and the state; a daemon holds both locks for its lifetime.
    func acquireLocks() throws {
        if let trouble = place.prepare() { throw StartFailure.failed(73, trouble) }
        try acquireLock(place.lock, at: { place.socket })
        let folder = stateDirectory
        try retryingWhileDiskIsFull { try DaemonLocks.makeFolder(folder) }
        // The state belongs to a single daemon, wherever that daemon listens.
        try acquireLock(folder + "/urlsessiond.lock", at: { DaemonPlace.notedSocket(in: folder) })
        // An earlier daemon wrote the note.
        unlink(DaemonPlace.note(in: folder))
    }

    /// Takes a lock; if another daemon holds the lock, waits until that daemon ends or is known to keep running.
    ///
    /// Sends the other daemon SIGTERM if this daemon replaces it, but never if the other daemon is of a newer version. An older
    /// daemon that holds the state's lock but does not listen at its noted socket is replaced in any case: programs cannot reach
    /// that daemon, for example because the login's runtime directory was removed.
    private func acquireLock(_ path: String, at socket: () -> String?) throws {
        let isPlace = path == place.lock
        var lock = try openLock(path)
        var end = Monitor.clock + (replaces ? Self.patience : Self.endPatience)
        var (answeredChecks, silentChecks, signaled) = (0, 0, Int32(0))
        var isReplacing = replaces
        while lock == -EWOULDBLOCK, Monitor.clock < end {
            // The holder may change: a program that lost its daemon may start another daemon meanwhile.
            let holder = cls_lock_holder(path)
            let isNewer = Self.isNewer(holder, at: path)
            if isNewer { isReplacing = false }
            if isReplacing {
                if holder > 1, holder != signaled {
                    journal.log(.notice, "process \(holder) is to end")
                    kill(holder, SIGTERM)
                    signaled = holder
                }
            } else if let socket = socket() {
                (answeredChecks, silentChecks) = isListening(at: socket) ? (answeredChecks + 1, 0) : (0, silentChecks + 1)
                if answeredChecks >= Self.requiredChecks.listening { throw StartFailure.another }
                isReplacing = !isNewer && !isPlace && silentChecks >= Self.requiredChecks.notListening
                if isReplacing { end = Monitor.clock + Self.patience }
            }
            // The reason is obsolete if the daemon that wrote it has ended or is about to end.
            if !isReplacing, holder > 1, let reason = Self.reason(in: path) { throw StartFailure.unresponsive(reason) }
            // Polls, because no event is available for a daemon that starts to listen. If several daemons wait, the first to get
            // the lock replaces the earlier daemon.
            cls_wait_for_end(holder, !isReplacing ? 50 : holder > 1 ? 1_000 : 2)
            lock = try openLock(path)
        }
        guard lock >= 0 else { throw StartFailure.unresponsive("another urlsessiond has locked \(path), and does not respond") }
        locks.add(path, lock)
        cls_lock_sign(lock, reason, CInt(MessageCoding.version))
    }

    private func openLock(_ path: String) throws -> CInt {
        try retryingWhileDiskIsFull {
            let lock = cls_lock_file(path, 0)
            if lock < 0, lock != -EWOULDBLOCK { throw StorageFailure(-lock, "The file \(path) cannot be created") }
            return lock
        }
    }

    /// Returns the reason that the lock's holder has written to the lock file.
    private static func reason(in path: String) -> String? {
        guard let lines = signature(in: path), lines.count > 1, !lines[1].isEmpty else { return nil }
        return String(lines[1])
    }

    /// Whether the daemon that has signed a lock speaks a newer version of the protocol; if the lock does not name a
    /// version, the daemon is older.
    private static func isNewer(_ holder: Int32, at path: String) -> Bool {
        guard holder > 1, let lines = signature(in: path), lines.count > 2 else { return false }
        return Int32(lines[0]) == holder && Int(lines[2]).map { $0 > MessageCoding.version } ?? false
    }

    private static func signature(in path: String) -> [Substring]? {
        let text = SmallFile.contents(of: path, limit: 1024).map { String(decoding: $0, as: UTF8.self) }
        return text?.split(separator: "\n", omittingEmptySubsequences: false)
    }

    /// Whether another process listens at a path.
    private func isListening(at socket: String) -> Bool {
        // The service manager's socket is this daemon's own.
        if let inherited, cls_listens_at(inherited, socket) != 0 { return false }
        let descriptor = cls_connect(socket, 1)
        guard descriptor >= 0 else { return false }
        _ = cls_close(descriptor)
        return true
    }

    // MARK: Disk space

    /// Does work that needs disk space, and retries it while the disk is full; throws for any other failure.
    func retryingWhileDiskIsFull<Value>(_ work: () throws -> Value) throws -> Value {
        var pause = interval
        while true {
            let failure: StorageFailure
            do {
                return try work()
            } catch let error as IOError {
                failure = StorageFailure(error.errnoCode, "The socket \(place.socket) cannot be created")
            } catch {
                failure = StorageFailure(error)
            }
            guard case .diskFull(let reason) = failure else { throw StartFailure.failed(74, failure.reason) }
            repeat { try wait(pause, because: reason) } while !hasSpace
            // The work may need more space than `hasSpace` checks for, so the next pause is longer.
            pause = min(pause * 2, Self.longestPause)
        }
    }

    /// Whether a small file can be written to the state's disk; also true if the check fails for another reason.
    private var hasSpace: Bool {
        let file = stateDirectory + "/urlsessiond.room"
        let error = SmallFile.replace(file, with: [UInt8](repeating: 0x20, count: Self.probeSize))
        unlink(file)
        return error != ENOSPC && error != EDQUOT
    }

    private func wait(_ seconds: Double, because reason: String) throws {
        let text = "urlsessiond waits for disk space: \(reason)"
        if self.reason != text {
            self.reason = text
            journal.log(.error, text)
            locks.sign(text)
            report(.waits(text))
        }
        let end = Monitor.clock + seconds
        var signals = signals
        while true {
            refuseWaiting(.waiting, text)
            let rest = min(end - Monitor.clock, inherited == nil ? seconds : 1)
            guard rest > 0 else { return }
            var time = timespec(tv_sec: Int(rest), tv_nsec: Int((rest - rest.rounded(.down)) * 1e9))
            let number = sigtimedwait(&signals, nil, &time)
            if number > 0 { throw StartFailure.signal(number) }
        }
    }

    // MARK: Waiting programs

    /// Reports that the daemon listens and that programs can find it.
    func listens() {
        reason = ""
        locks.sign("")
        report(.listens)
        closeReport()
    }

    /// - Returns: The exit status.
    func end(_ failure: StartFailure) -> Int32 {
        defer { leave() }
        switch failure {
        case .another:
            report(.another)
            if replaces { journal.log(.notice, "a newer urlsessiond is running, and stays") }
            // Programs that wait at the service manager's socket connect again, and reach the other daemon.
            dismissWaiting(with: [])
            return 0
        case .unresponsive(let reason):
            journal.log(.error, reason)
            report(.waits(reason))
            refuseWaiting(.waiting, reason)
            return 75
        case .failed(let status, let reason):
            journal.log(.error, reason)
            report(.failed(reason))
            refuseWaiting(.storage, reason)
            return status
        case .signal(let number):
            journal.log(.notice, "urlsessiond ends: signal \(number)")
            return 0
        }
    }

    /// Replaces this process by a new daemon, which reads everything anew, and which has the same options and the service manager's
    /// socket.
    ///
    /// - Returns: The exit status if this is not possible.
    func beginAnew(because reason: String) -> Int32 {
        let now = cls_boot_seconds()
        guard now - lastBegin > Self.shortestLife else {
            return end(.failed(74, "urlsessiond ends, because it would begin anew twice in a row. \(reason)"))
        }
        setenv(Self.anewVariable, "\(now) \(reason)", 1)
        var arguments = CommandLine.arguments.map { strdup($0) } + [nil]
        let error = cls_begin_anew(&arguments, inherited ?? -1)
        return end(.failed(74, "urlsessiond cannot begin anew: \(String(cString: strerror(-error)))"))
    }

    /// Releases the locks.
    func leave() { locks.leave() }

    private func report(_ word: StartupMessage) {
        guard reports else { return }
        _ = Array(word.line.utf8).withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
    }

    /// Closes the pipe to the program that started the daemon: no more reports follow.
    private func closeReport() {
        guard reports else { return }
        let null = open("/dev/null", O_WRONLY | O_CLOEXEC)
        guard null >= 0 else { return }
        dup2(null, 1)
        close(null)
    }

    /// Refuses the connections that wait at the service manager's socket, and tells them the reason.
    private func refuseWaiting(_ refusal: DaemonMessage.Refusal, _ reason: String) {
        guard let payload = try? MessageCoding.encode(.refused(refusal, reason)) else { return }
        dismissWaiting(with: FrameReader.frame(payload))
    }

    private func dismissWaiting(with frame: [UInt8]) {
        guard let inherited else { return }
        while case let socket = cls_accept_waiting(inherited), socket >= 0 {
            var peer = cls_peer()
            if cls_peer(socket, &peer) == 0, peer.user == geteuid() {
                _ = frame.withUnsafeBytes { cls_send_all(socket, $0.baseAddress, $0.count) }
            }
            _ = cls_close(socket)
        }
    }
}
