//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundClient
import BackgroundProtocol
import CLoadingSystem
import FoundationEssentials
import HTTPRules
import LoadingEngine
import LoadingModel
import LoadingStores
import NIOCore
import NIOPosix
import NetworkPaths
import SystemThreads

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// The program `urlsessiond`.
package enum Daemon {
    /// Seconds that another daemon has to end.
    private static let patience = 30.0

    /// Seconds that is waited for one that ends by itself.
    private static let endPatience = 10.0

    private static let usage = """
        urlsessiond: carries out the background transfers of this user's programs.

          urlsessiond                    runs until it is told to end; one at a time
          urlsessiond --idle-exit SECS   ends after so many seconds without anything to do
          urlsessiond --replace          takes the place of the one that runs
          urlsessiond status [--json]    says what the one that runs is about
          urlsessiond --version

        """

    package static func main() -> Int32 {
        // They are waited for by a thread of their own.
        raiseLimits()
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&signals, signal) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        signal(SIGPIPE, SIG_IGN)

        var arguments = CommandLine.arguments.dropFirst()
        if arguments.first == "status" { return StatusCommand.run(asJSON: arguments.contains("--json")) }
        guard let state = StoreLocations.stateDirectory() else {
            return complain("there is no folder for the daemon's state: neither XDG_STATE_HOME nor HOME is set")
        }
        var options = DaemonOptions(stateDirectory: state + "/background")
        while let argument = arguments.popFirst() {
            switch argument {
            case "--idle-exit":
                guard let seconds = arguments.popFirst().flatMap(Double.init), seconds >= 0, seconds.isFinite else {
                    return complain("--idle-exit wants a number of seconds")
                }
                options.idleLimit = seconds
            case "--replace": options.replaces = true
            case "--version":
                print("urlsessiond \(LibraryVersion.text)")
                return 0
            case "--help", "-h":
                print(usage, terminator: "")
                return 0
            default: return complain("unknown option \(argument)\n\n\(usage)")
            }
        }
        options.readEnvironment(ProcessInfo.processInfo.environment)
        return run(options, signals)
    }

    /// Each program and each transfer takes descriptors: as many as the system allows, within reason.
    private static func raiseLimits() {
        #if canImport(Glibc)
        let descriptors = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let descriptors = RLIMIT_NOFILE
        #endif
        var limit = rlimit()
        guard getrlimit(descriptors, &limit) == 0 else { return }
        limit.rlim_cur = max(limit.rlim_cur, min(limit.rlim_max, 65_536))
        setrlimit(descriptors, &limit)
    }

    private static func complain(_ text: String) -> Int32 {
        StandardError.say("urlsessiond: \(text)")
        return 64
    }

    private static func run(_ options: DaemonOptions, _ signals: sigset_t) -> Int32 {
        let journal = Journal()
        let place = DaemonPlace()
        if let trouble = place.prepare() {
            journal.say(.error, trouble)
            return 73
        }
        // Held until the process ends.
        let replaces = options.replaces || inheritedSocket() != nil
        guard let lock = acquire(place.lock, at: place.socket, replacing: replaces, journal) else { return 0 }
        defer { _ = cls_close(lock) }
        // Of one state, whatever places there are to listen at.
        try? FileManager.default.createDirectory(
            atPath: options.stateDirectory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let stateLockPath = options.stateDirectory + "/urlsessiond.lock"
        let socketNote = options.stateDirectory + "/urlsessiond.place"
        // One whose socket is gone, with the runtime directory of a login that is over, say, or replaced by this one's, is of no use.
        let other = (try? String(contentsOfFile: socketNote, encoding: .utf8)) ?? place.socket
        let isStranded = other == place.socket || facts(of: other) == nil
        guard let stateLock = acquire(stateLockPath, at: other, replacing: replaces || isStranded, journal) else {
            journal.say(.error, "another urlsessiond, which listens at \(other), has the state in \(options.stateDirectory)")
            return 75
        }
        defer { _ = cls_close(stateLock) }
        try? place.socket.write(toFile: socketNote, atomically: true, encoding: .utf8)
        // Opens libraries, for which the loop need not wait later.
        _ = SystemCodings.acceptEncoding
        let desk: TransferDesk
        var ownSocket: SocketFacts?
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        do {
            let store = try TransferStore.open(directory: options.stateDirectory)
            let spool = try Spool(options.spoolDirectory ?? options.stateDirectory + "/spool")
            if let trouble = store.trouble { journal.say(.error, trouble) }
            let contents = try store.load()
            desk = TransferDesk(store: store, spool: spool, journal: journal, options: options, loop: group.next())
            try desk.executor.loop.submit { [desk] in desk.assumeIsolated { $0.restore(contents) } }.wait()
            // A lock is held from here on, so that a socket that is still there is a dead daemon's.
            let server = SocketServer(desk: desk, group: group)
            let inherited = inheritedSocket()
            if let inherited {
                _ = try server.listen(on: inherited)
            } else {
                _ = try server.listen(at: place)
                ownSocket = facts(of: place.socket)
            }
            journal.say(.notice, "urlsessiond \(LibraryVersion.text) listens, with \(contents.transfers.count) transfers")
        } catch {
            journal.say(.error, (error as? StorageFailure)?.reason ?? "\(error)")
            return 74
        }
        watchConditions(desk)
        let reason = end(desk, signals)
        journal.say(.notice, "urlsessiond ends: \(reason)")
        // By now it may be another's: a service manager's, say.
        if let ownSocket, facts(of: place.socket) == ownSocket { unlink(place.socket) }
        let end = Awaited()
        desk.enter { desk in desk.shutDown { end.come("") } }
        _ = end.wait()
        return 0
    }

    /// Which of all the files that ever had its name a socket is.
    private struct SocketFacts: Hashable {
        var device: UInt64
        var inode: UInt64
        var changed: Int64
    }

    private static func facts(of path: String) -> SocketFacts? {
        var facts = cls_file_facts()
        guard cls_path_facts(path, &facts) == 0 else { return nil }
        return SocketFacts(device: facts.device, inode: facts.inode, changed: facts.changed)
    }

    /// A lock that one daemon holds for its life; nil where another one has it and keeps it.
    ///
    /// One that takes another's place, or whose socket systemd has, asks that one to end, and waits for it.
    private static func acquire(_ path: String, at socket: String, replacing: Bool, _ journal: Journal) -> CInt? {
        var lock = cls_lock_file(path, 0)
        if lock == -EWOULDBLOCK {
            let end = Monitor.clock + (replacing ? patience : endPatience)
            // One that nobody can speak to any more is about to end; and one that was just killed seems to listen for a moment.
            var (answers, asked) = (0, Int32(0))
            while lock == -EWOULDBLOCK, Monitor.clock < end, replacing || answers < 4 {
                // A program that lost its daemon may have started another one meanwhile.
                let holder = cls_lock_holder(path)
                if replacing {
                    if holder > 1, holder != asked {
                        journal.say(.notice, "process \(holder) is to end")
                        kill(holder, SIGTERM)
                        asked = holder
                    }
                } else {
                    answers = isListening(at: socket) ? answers + 1 : 0
                }
                // Who takes another's place is the first to have it. Whether one listens is nothing that can be waited for.
                cls_wait_for_end(holder, !replacing ? 50 : holder > 1 ? 1_000 : 2)
                lock = cls_lock_file(path, 0)
            }
        }
        guard lock >= 0 else {
            if lock != -EWOULDBLOCK || replacing { journal.say(.error, "\(path): \(String(cString: strerror(-lock)))") }
            return nil
        }
        cls_lock_sign(lock)
        return lock
    }

    private static func isListening(at socket: String) -> Bool {
        let descriptor = cls_connect(socket, 1)
        guard descriptor >= 0 else { return false }
        _ = cls_close(descriptor)
        return true
    }

    /// The socket that systemd listens on for us (sd_listen_fds(3)).
    private static func inheritedSocket() -> CInt? {
        let environment = ProcessInfo.processInfo.environment
        guard environment["LISTEN_PID"].flatMap(Int32.init) == getpid(), let count = environment["LISTEN_FDS"].flatMap(Int.init),
            count >= 1
        else { return nil }
        return 3
    }

    private static func watchConditions(_ desk: TransferDesk) {
        _ = SystemPathMonitor.shared.watch { path in
            desk.enter { desk in
                desk.setConditions {
                    $0.isConnected = path.isSatisfied
                    $0.isMetered = desk.options.isMetered ?? path.interfaces.first?.isExpensive ?? false
                }
            }
        }
        desk.enter { $0.watchPower() }
    }

    /// Waits until somebody wants the daemon to end.
    ///
    /// - Returns: Who.
    private static func end(_ desk: TransferDesk, _ signals: sigset_t) -> String {
        let reason = Awaited()
        desk.enter { desk in
            desk.onIdle = { reason.come("nobody needs it") }
            desk.considerIdling()
        }
        _ = Threads.start("bg-signals") {
            var signals = signals
            var number: CInt = 0
            while sigwait(&signals, &number) != 0 {}
            reason.come("signal \(number)")
        }
        return reason.wait()
    }
}
