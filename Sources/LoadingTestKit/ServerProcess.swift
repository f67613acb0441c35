//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#endif

/// A program that a test starts and stops: one that serves on loopback ports, or one that does its work and ends.
package final class ServerProcess: Sendable {
    package struct Failure: Error, CustomStringConvertible {
        package var description: String
    }

    /// How a program is started: its arguments, and what it has in its environment besides PATH, HOME and LANG.
    package struct Order {
        package var arguments: [String]
        package var environment: [String: String]
        /// What it reads; /dev/null if nil.
        package var input: URL?
        /// Where its output goes.
        package var output: URL
        /// Sockets that it sees as 3, 4 and so on.
        var sockets: [Int32]

        package init(_ arguments: [String], environment: [String: String] = [:], input: URL? = nil, output: URL) {
            self.init(arguments, environment: environment, input: input, output: output, sockets: [])
        }

        init(
            _ arguments: [String], environment: [String: String] = [:], input: URL? = nil, output: URL, sockets: [Int32]
        ) {
            self.arguments = arguments
            self.environment = environment
            self.input = input
            self.output = output
            self.sockets = sockets
        }
    }

    private let process: Mutex<pid_t?>

    private init(_ process: pid_t) { self.process = Mutex(process) }

    /// Finds a program; daemons are not always on the path.
    package static func program(_ name: String, package: String) throws -> String {
        let folders = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/sbin", "/bin"]
        let places = folders.map { "\($0)/\(name)" }
        guard let program = places.first(where: FileManager.default.isExecutableFile(atPath:)) else {
            throw Failure(description: "\(name) is not installed: apt-get install \(package)")
        }
        return program
    }

    /// Starts a program and waits until it accepts connections at as many ports as it needs.
    ///
    /// The ports are free when they are chosen. Should one be taken before the program has it, the program ends, and other ports are
    /// tried.
    static func serving(ports count: Int, _ order: ([Int]) throws -> Order) throws -> (ServerProcess, ports: [Int]) {
        var log = ""
        for _ in 0..<5 {
            let ports = try freePorts(count)
            let order = try order(ports)
            let process = try start(order)
            if try process.accepts(at: ports) { return (process, ports) }
            log = (try? String(contentsOf: order.output, encoding: .utf8)) ?? ""
        }
        throw Failure(description: "the server does not start: \(log.suffix(2000))")
    }

    /// Runs a program to its end, and says what it wrote.
    @discardableResult
    package static func run(_ order: Order) throws -> String {
        let status = try start(order).waited()
        let text = (try? String(contentsOf: order.output, encoding: .utf8)) ?? ""
        guard status == 0 else {
            throw Failure(
                description: "\(order.arguments.joined(separator: " ")) ended with status \(status): \(text.suffix(2000))")
        }
        return text
    }

    static func start(_ order: Order) throws -> ServerProcess {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, order.input?.path ?? "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, order.output.path, O_WRONLY | O_CREAT | O_APPEND, 0o644)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        // Duplicates above the numbers that the child sees them under.
        let high = order.sockets.map { fcntl($0, F_DUPFD_CLOEXEC, 64) }
        defer { for descriptor in high { Glibc.close(descriptor) } }
        for (index, descriptor) in high.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(3 + index))
        }
        let variables = [
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
            "HOME": order.output.deletingLastPathComponent().path,
        ].merging(order.environment) { $1 }
        let argv: [UnsafeMutablePointer<CChar>?] = order.arguments.map { strdup($0) } + [nil]
        let environment: [UnsafeMutablePointer<CChar>?] = variables.map { strdup("\($0)=\($1)") } + [nil]
        defer { for pointer in argv + environment { free(pointer) } }
        // Threads that run Swift's tasks have signals blocked, which would be handed down.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var process: pid_t = 0
        let result = posix_spawn(&process, order.arguments[0], &actions, &attributes, argv, environment)
        guard result == 0 else { throw Failure(description: "starting \(order.arguments[0]): errno \(result)") }
        return ServerProcess(process)
    }

    var isRunning: Bool {
        process.withLock { process in
            guard let running = process else { return false }
            var status: Int32 = 0
            guard waitpid(running, &status, WNOHANG) != 0 else { return true }
            process = nil
            return false
        }
    }

    /// Asks it to end, and waits until it has.
    func stop(_ signal: Int32 = SIGTERM) {
        let running = take()
        guard let running else { return }
        kill(running, signal)
        var status: Int32 = 0
        waitpid(running, &status, 0)
    }

    deinit { stop(SIGKILL) }

    private func take() -> pid_t? {
        process.withLock { process in
            defer { process = nil }
            return process
        }
    }

    private func waited() -> Int32 {
        guard let running = take() else { return -1 }
        var status: Int32 = 0
        waitpid(running, &status, 0)
        return status
    }

    /// False if it ends instead.
    private func accepts(at ports: [Int]) throws -> Bool {
        for port in ports {
            var attempts = 0
            while true {
                guard isRunning else { return false }
                if Self.connects(to: port) { break }
                attempts += 1
                guard attempts < 3000 else {
                    stop(SIGKILL)
                    throw Failure(description: "nobody listens at port \(port)")
                }
                usleep(10_000)
            }
        }
        return isRunning
    }
}

// MARK: Sockets

extension ServerProcess {
    /// Where a server listens that is handed its socket down.
    static func listeningSocket() throws -> (descriptor: Int32, port: Int) { try socket(isListening: true) }

    private static func freePorts(_ count: Int) throws -> [Int] {
        var sockets: [(descriptor: Int32, port: Int)] = []
        defer { for socket in sockets { Glibc.close(socket.descriptor) } }
        for _ in 0..<count { sockets.append(try socket(isListening: false)) }
        return sockets.map(\.port)
    }

    private static func socket(isListening: Bool) throws -> (descriptor: Int32, port: Int) {
        let descriptor = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Failure(description: "socket: errno \(errno)") }
        var address = loopback(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(descriptor, pointer, length) == 0 && (!isListening || listen(descriptor, 1024) == 0)
                    && getsockname(descriptor, pointer, &length) == 0
            }
        }
        guard isBound else {
            Glibc.close(descriptor)
            throw Failure(description: "bind to 127.0.0.1: errno \(errno)")
        }
        return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
    }

    private static func connects(to port: Int) -> Bool {
        let descriptor = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { Glibc.close(descriptor) }
        var address = loopback(port: port)
        return withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                connect(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    private static func loopback(port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = UInt16(port).bigEndian
        return address
    }
}
