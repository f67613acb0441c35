// SPDX-License-Identifier: Apache-2.0

import BackgroundClient
import BackgroundProtocol
import CLoadingSystem
import FoundationEssentials
import HTTPRules
import LibC
import LoadingEngine
import LoadingModel
import LoadingStores
import NIOCore
import NIOPosix
import NetworkPaths
import SystemThreads

#if !Daemon
#error("urlsessiond needs the package's trait Daemon, which is a default one: if you pass --traits, include Daemon")
#endif

/// The program `urlsessiond`.
package enum DaemonProgram {
    private static let usage = """
        urlsessiond: runs the background transfers of this user's programs.

          urlsessiond                    runs until it is told to end; only one can run at a time
          urlsessiond --idle-exit SECS   ends when it has been idle for SECS seconds
          urlsessiond --replace          replaces the running urlsessiond
          urlsessiond status [--json]    shows the status of the running urlsessiond
          urlsessiond --version

        """

    package static func main() -> Int32 {
        raiseLimits()
        // Blocked in all threads: `sigwait` receives these signals.
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&signals, signal) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        signal(SIGPIPE, SIG_IGN)

        var arguments = CommandLine.arguments.dropFirst()
        if arguments.first == "status" { return StatusCommand.run(asJSON: arguments.contains("--json")) }
        guard let state = StoreLocations.stateDirectory() else {
            return usageError("there is no folder for the daemon's state: neither XDG_STATE_HOME nor HOME is set")
        }
        var options = DaemonOptions(stateDirectory: state + "/background")
        while let argument = arguments.popFirst() {
            switch argument {
            case "--idle-exit":
                guard let seconds = arguments.popFirst().flatMap(Double.init), seconds >= 0, seconds.isFinite else {
                    return usageError("--idle-exit needs a number of seconds")
                }
                options.idleLimit = seconds
            case "--replace": options.replaces = true
            case "--version":
                print("urlsessiond \(LibraryVersion.text)")
                return 0
            case "--help", "-h":
                print(usage, terminator: "")
                return 0
            default: return usageError("unknown option \(argument)\n\n\(usage)")
            }
        }
        options.readEnvironment(ProcessInfo.processInfo.environment)
        return run(options, signals)
    }

    /// Raises the limit on file descriptors to the system's maximum or 65,536, because each program and each transfer needs some.
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

    private static func usageError(_ text: String) -> Int32 {
        StandardError.log("urlsessiond: \(text)")
        return 64
    }

    private static func run(_ options: DaemonOptions, _ signals: sigset_t) -> Int32 {
        let journal = Journal()
        let start = DaemonStart(journal, options, signals)
        do {
            try start.acquireLocks()
            // Loads the decompression libraries now, so that the event loop does not block on that later.
            _ = SystemCodings.acceptEncoding
            let folder = options.stateDirectory
            let (store, contents) = try start.retryingWhileDiskIsFull { try open(folder, start.trouble) }
            let spool = try start.retryingWhileDiskIsFull { try Spool(options.spoolDirectory ?? folder + "/spool") }
            if let trouble = store.trouble { journal.log(.error, trouble) }
            let reason = try serve(store, contents, spool, start, options)
            // This comes last, because another daemon may start as soon as the locks are released.
            start.leave()
            return reason.map { start.beginAnew(because: $0) } ?? 0
        } catch {
            return start.end(error as? StartFailure ?? .failed(74, "\(error)"))
        }
    }

    private static func open(
        _ folder: String, _ trouble: String?
    ) throws(StorageFailure) -> (TransferStore, TransferStore.Contents) {
        let store = try TransferStore.open(directory: folder, trouble: trouble)
        do throws(StorageFailure) {
            return (store, try store.load())
        } catch .damaged {
            store.close()
        }
        // Damage must be found twice: the disk may not have returned a page.
        let again = try TransferStore.open(directory: folder, trouble: store.trouble ?? trouble)
        do throws(StorageFailure) {
            return (again, try again.load())
        } catch .damaged(let reason) {
            again.close()
            let other = try TransferStore.open(directory: folder, knownDamage: reason)
            return (other, try other.load())
        }
    }

    /// - Returns: Why the daemon has to begin anew; nil if it ends.
    private static func serve(
        _ store: TransferStore, _ contents: TransferStore.Contents, _ spool: Spool, _ start: DaemonStart, _ options: DaemonOptions
    ) throws -> String? {
        let journal = start.journal
        let place = start.place
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let desk = TransferDesk(store: store, spool: spool, journal: journal, options: options, loop: group.next())
        let note = DaemonPlace.note(in: options.stateDirectory)
        try start.retryingWhileDiskIsFull {
            let error = SmallFile.replace(note + ".new", with: Array(place.socket.utf8))
            if error != 0 { throw StorageFailure(error, "The file \(note) cannot be created") }
        }
        _ = try? desk.executor.loop.submit { [desk] in desk.assumeIsolated { $0.restore(contents) } }.wait()
        Leftovers.remove(place, options.stateDirectory, contents)
        do {
            return try listen(desk, group, note, contents.transfers.count, start)
        } catch {
            // Makes the state durable, so that another daemon can take over.
            shutDown(desk)
            throw error
        }
    }

    private static func shutDown(_ desk: TransferDesk) {
        let end = BlockingPromise()
        desk.enter { desk in desk.shutDown { end.fulfill("") } }
        _ = end.wait()
    }

    private static func listen(
        _ desk: TransferDesk, _ group: MultiThreadedEventLoopGroup, _ note: String, _ count: Int, _ start: DaemonStart
    ) throws -> String? {
        let (journal, place) = (start.journal, start.place)
        let server = SocketServer(desk: desk, group: group)
        let watch = PlaceWatch(server, place, start.locks, desk)
        try start.retryingWhileDiskIsFull {
            // Programs look for a socket at this path. Systemd's socket may be gone, if another daemon has replaced it.
            if let inherited = start.inherited, cls_listens_at(inherited, place.socket) != 0 { return }
            // This daemon holds the lock, so an existing socket belongs to a dead daemon.
            try watch.listen()
        }
        if let inherited = start.inherited { _ = try start.retryingWhileDiskIsFull { try server.listen(on: inherited) } }
        rename(note + ".new", note)
        journal.log(.notice, "urlsessiond \(LibraryVersion.text) listens, with \(count) transfers")
        start.listens()
        watchConditions(desk)
        watch.begin()
        let reason = end(desk, start.signals)
        journal.log(.notice, "urlsessiond ends: \(reason)")
        watch.end()
        shutDown(desk)
        return try desk.executor.loop.submit { desk.assumeIsolated { $0.mustEnd ? nil : $0.reasonToBeginAnew } }.wait()
    }

    private static func watchConditions(_ desk: TransferDesk) {
        _ = SystemPathMonitor.shared.watch { path in
            desk.enter { desk in
                desk.setConditions {
                    $0.isConnected = path.isSatisfied
                    $0.isMetered = desk.options.isMetered ?? path.interfaces.first?.isExpensive ?? false
                }
                desk.schedule(.networkChanged)
            }
        }
        desk.enter { $0.watchPower() }
    }

    /// Waits until the daemon has to end.
    ///
    /// - Returns: The reason.
    private static func end(_ desk: TransferDesk, _ signals: sigset_t) -> String {
        let reason = BlockingPromise()
        desk.enter { desk in
            desk.onEnd = { reason.fulfill($0 ?? "nobody needs it") }
            desk.updateIdleTimer()
            desk.store.watch { event in
                desk.enter { desk in
                    switch event {
                    case .damaged(let reason): desk.beginAnew(because: reason, isListDamaged: true)
                    case .written: desk.journal.log(.error, "the list of transfers was removed, and was written again")
                    }
                }
            }
        }
        _ = Threads.start("bg-signals") {
            var signals = signals
            var number: CInt = 0
            while sigwait(&signals, &number) != 0 {}
            desk.enter { $0.mustEnd = true }
            reason.fulfill("signal \(number)")
        }
        return reason.wait()
    }
}
