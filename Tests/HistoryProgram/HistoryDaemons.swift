// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import CLoadingSystem
import Foundation
import HistoryModel
import LoadingTestKit

#if canImport(Glibc)
import Glibc
#endif

/// A daemon that the library did not start, or the service manager.
struct DaemonHandle: Sendable {
    let process: ServerProcess
    let said: Watched<(text: String, isOver: Bool)>

    var text: String { said.read { $0.text } }
}

/// Daemons of other versions, and a service manager.
extension HistoryPlace {
    private func start(_ arguments: [String], _ more: [String: String] = [:]) throws -> DaemonHandle {
        let said = Watched((text: "", isOver: false))
        keepDescriptors()
        let process = try ServerProcess.start(
            ServerProcess.Command(
                arguments, environment: variables.merging(more) { $1 },
                output: .pipe { data in
                    said.change { ($0.text, $0.isOver) = ($0.text + String(decoding: data, as: UTF8.self), data.isEmpty) }
                }))
        return DaemonHandle(process: process, said: said)
    }

    /// Starts a daemon, which reports when it has signed its locks.
    func startDaemon(_ options: [String]) throws -> DaemonHandle {
        try start([bin.path + "/urlsessiond", "--idle-exit", "30"] + options, [StartupMessage.variable: "1"])
    }

    /// Starts a daemon of version 1, which replaces any running daemon.
    func startOlderDaemon() throws -> DaemonHandle { try start([bin.path + "/older/urlsessiond", "--older-daemon"]) }

    /// Starts a service manager that listens at the daemon's path; with the option `once`, at another path to which it itself
    /// connects.
    func startManager(_ options: [String]) throws -> DaemonHandle {
        try start(["/usr/bin/env", "python3", "-c", Self.manager, folder.path, bin.path + "/urlsessiond"] + options)
    }

    private var folder: URL { home.appendingPathComponent("run/urlloading") }

    /// A service manager as in sd_listen_fds(3).
    private static let manager = """
        import os, select, socket, sys
        folder, program, once = sys.argv[1], sys.argv[2], sys.argv[3:] == ["once"]
        path = folder + ("/first.socket" if once else "/urlsessiond.socket")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path + ".new")
        os.chmod(path + ".new", 0o600)
        listener.listen(128)
        os.rename(path + ".new", path)
        print("listening", flush=True)
        if once:
            client = socket.socket(socket.AF_UNIX)
            client.connect(path)
        while True:
            select.select([listener], [], [])
            child = 0 if once else os.fork()
            if child == 0:
                if listener.fileno() != 3: os.dup2(listener.fileno(), 3)
                os.set_inheritable(3, True)
                os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
                os.execv(program, [program, "--idle-exit", "30"])
            os.waitpid(child, 0)
        """

    // MARK: Locks

    private var locks: [URL] {
        [folder, home.appendingPathComponent("state/urlloading/background")].map { $0.appendingPathComponent("urlsessiond.lock") }
    }

    private func lines(of lock: URL) -> [String] {
        ((try? String(contentsOf: lock, encoding: .utf8)) ?? "").components(separatedBy: "\n")
    }

    /// The process that has signed the lock of the daemon's folder.
    var daemon: pid_t? { lines(of: locks[0]).first.flatMap { pid_t($0) } }

    /// Changes the version of the protocol in the running daemon's signatures; returns the previous version.
    @discardableResult
    func mark(_ version: Int) -> Int {
        var previous = version
        for lock in locks {
            var lines = lines(of: lock)
            guard lines.count > 2 else { continue }
            previous = Int(lines[2]) ?? previous
            lines[2] = "\(version)"
            // The file keeps its lock.
            try? Data(lines.joined(separator: "\n").utf8).write(to: lock, options: [])
        }
        return previous
    }
}

/// A daemon of version 1 as a program of this version sees it: it refuses every program because of its version.
///
/// It takes the place of any running daemon, as daemons of that version did.
enum OlderDaemon {
    static func run() throws -> Never {
        let place = DaemonPlace()
        guard place.prepare() == nil, let state = place.stateDirectory else { exit(73) }
        try FileManager.default.createDirectory(
            atPath: state, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        for lock in [place.lock, state + "/urlsessiond.lock"] { take(lock) }
        let refusal = "urlsessiond supports protocol version 1, but the program needs \(MessageCoding.version)"
        let answer = FrameReader.frame(try MessageCoding.encode(.refused(.version, refusal)))
        let listener = openSocket(at: place.socket)
        while case let client = accept(listener, nil, nil), client >= 0 {
            // A program says hello first.
            var hello = [UInt8](repeating: 0, count: 4096)
            _ = recv(client, &hello, hello.count, 0)
            _ = cls_send_all(client, answer, answer.count)
            close(client)
        }
        exit(71)
    }

    /// Takes a lock, and ends its holders until it is free; the lock is kept until the process ends.
    private static func take(_ path: String) {
        for _ in 0..<1000 {
            let lock = cls_lock_file(path, 0)
            if lock >= 0 { return cls_lock_sign(lock, "", 1) }
            let holder = cls_lock_holder(path)
            if holder > 1 { kill(holder, SIGKILL) }
            // Without a process, this only pauses.
            cls_wait_for_end(holder, holder > 1 ? 1000 : 5)
        }
        exit(75)
    }

    private static func openSocket(at path: String) -> CInt {
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unlink(path)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let result = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0, listen(listener, 16) == 0 else { exit(71) }
        return listener
    }
}
