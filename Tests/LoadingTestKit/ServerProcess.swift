// SPDX-License-Identifier: Apache-2.0

package import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#endif

/// A program that a test starts and stops: a server on loopback ports, or a command that ends by itself.
package final class ServerProcess: Sendable {
    package struct Failure: Error, CustomStringConvertible {
        package var description: String
    }

    /// The destination of a program's output.
    package enum Output: Sendable {
        case file(URL)
        /// Passes the output on as it arrives, on a separate thread; empty data marks the end.
        case pipe(@Sendable (Data) -> Void)
        case nothing
    }

    /// The arguments of a program, and its environment variables besides PATH, HOME and LANG.
    package struct Command: Sendable {
        package var arguments: [String]
        package var environment: [String: String]
        /// The working directory; nil means this process's.
        package var directory: URL?
        /// The standard input; nil means /dev/null.
        package var input: URL?
        package var output: Output
        /// The destination of standard error; nil means that of the output.
        package var errors: Output?
        /// The sockets that the program gets as descriptors 3, 4 and so on.
        var sockets: [Int32]

        package init(
            _ arguments: [String], environment: [String: String] = [:], in directory: URL? = nil, input: URL? = nil,
            output: Output,
            errors: Output? = nil
        ) {
            self.init(
                arguments, environment: environment, in: directory, input: input, output: output, errors: errors, sockets: [])
        }

        package init(_ arguments: [String], environment: [String: String] = [:], input: URL? = nil, output: URL) {
            self.init(arguments, environment: environment, input: input, output: .file(output))
        }

        init(
            _ arguments: [String], environment: [String: String] = [:], in directory: URL? = nil, input: URL? = nil,
            output: Output,
            errors: Output? = nil, sockets: [Int32]
        ) {
            self.arguments = arguments
            self.environment = environment
            self.directory = directory
            self.input = input
            self.output = output
            self.errors = errors
            self.sockets = sockets
        }

        /// The content of the output file.
        var text: String {
            guard case .file(let file) = output else { return "" }
            return (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        }
    }

    private let process: pid_t
    /// The exit code, or 128 plus the signal, after the process was reaped; the process ID may then belong to another program.
    private let code = Mutex<Int32?>(nil)

    init(_ process: pid_t) { self.process = process }

    /// Finds a program in the usual folders, because daemons are not always in PATH.
    package static func program(_ name: String, package: String) throws -> String {
        let folders = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/sbin", "/bin"]
        let places = folders.map { "\($0)/\(name)" }
        guard let program = places.first(where: FileManager.default.isExecutableFile(atPath:)) else {
            throw Failure(description: "\(name) is not installed: run apt-get install \(package)")
        }
        return program
    }

    /// Finds a program in the build folder, where `Scripts/install-needs` puts it.
    static func buildFolderProgram(_ path: String) throws -> String {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        for start in [FileManager.default.currentDirectoryPath, program] + CommandLine.arguments {
            var folder = URL(fileURLWithPath: start)
            while folder.path != "/" {
                let found = folder.appendingPathComponent(".build/\(path)").path
                if FileManager.default.isExecutableFile(atPath: found) { return found }
                folder = folder.deletingLastPathComponent()
            }
        }
        throw Failure(description: ".build/\(path) does not exist: run Scripts/install-needs test")
    }

    /// Runs a program to its end; returns the content of its output file.
    @discardableResult
    package static func run(_ command: Command) throws -> String { try outcome(of: command, try start(command).waitForExit()) }

    /// Runs a program without blocking a thread; cancelling the task kills the program.
    @discardableResult
    package static func run(_ command: Command) async throws -> String {
        try outcome(of: command, try await start(command).end())
    }

    private static func outcome(of command: Command, _ code: Int32) throws -> String {
        let text = command.text
        guard code == 0 else {
            throw Failure(
                description: "\(command.arguments.joined(separator: " ")) ended with status \(code): \(text.suffix(2000))")
        }
        return text
    }

    /// Starts a program and waits until its output shows that it is ready; returns that output.
    package static func start(
        _ arguments: [String], until isReady: @escaping @Sendable (String) -> Bool
    ) async throws -> (ServerProcess, String) {
        let output = Watched((text: "", hasEnded: false))
        let process = try start(
            Command(
                arguments,
                output: .pipe { data in
                    output.change { output in
                        output.text += String(decoding: data, as: UTF8.self)
                        output.hasEnded = data.isEmpty
                    }
                }))
        let (text, isRunning) = try await output.value { output -> (String, Bool)? in
            if isReady(output.text) { return (output.text, true) }
            return output.hasEnded ? (output.text, false) : nil
        }
        guard isRunning else { throw Failure(description: "\(arguments[0]) did not start: \(text.suffix(2000))") }
        return (process, text)
    }

    /// Starts a server program with a number of ports, and waits until its log reports that the program is ready, and until the
    /// program accepts connections.
    ///
    /// The log alone is not enough: squid reports slightly too early that it is ready.
    ///
    /// The ports are free when they are chosen. If another process takes a port before the program does, the program ends, and
    /// other ports are tried.
    static func startServer(
        ports count: Int, sign: String, in log: URL, _ command: ([Int]) throws -> Command
    ) throws -> (ServerProcess, ports: [Int]) {
        func text() -> String { (try? String(contentsOf: log, encoding: .utf8)) ?? "" }
        func isReady(_ ports: [Int]) -> Bool { text().contains(sign) && ports.allSatisfy(connects) }
        var output = ""
        for _ in 0..<5 {
            let ports = try freePorts(count)
            let command = try command(ports)
            let changes = try FileChanges(below: log.deletingLastPathComponent())
            let process = try start(command)
            let life = Pipe()
            // The thread has only the process ID and not the ServerProcess, because the release of that object ends the program.
            Thread.detachNewThread { [number = process.process] in
                awaitEnd(of: number)
                try? life.fileHandleForWriting.close()
            }
            // If the report came too early, the log grows again a moment later.
            while !isReady(ports), changes.wait(orEndOf: life.fileHandleForReading.fileDescriptor) {}
            if isReady(ports) { return (process, ports) }
            output = command.text + text()
        }
        throw Failure(description: "the server did not start: \(output.suffix(2000))")
    }

    /// Starts a server program with a free UDP port, and waits until a server of QUIC answers at the port.
    static func startQUICServer(in log: URL, _ command: (Int) throws -> Command) throws -> (ServerProcess, port: Int) {
        for _ in 0..<5 {
            let socket = try socket(kind: SOCK_DGRAM, isListening: false)
            Glibc.close(socket.descriptor)
            let process = try start(try command(socket.port))
            if answersQUIC(at: socket.port, whileRuns: process.process) { return (process, socket.port) }
        }
        let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
        throw Failure(description: "the server did not start: \(text.suffix(2000))")
    }

    /// Sends a signal to the program, if it is running.
    package func signal(_ signal: Int32) {
        code.withLock { if $0 == nil { _ = kill(process, signal) } }
    }

    /// Sends a signal to end the program, and waits until it has ended.
    package func stop(_ signal: Int32 = SIGTERM) {
        self.signal(signal)
        waitForExit()
    }

    deinit { stop(SIGKILL) }

    /// Waits for the end; returns the exit code, or 128 plus the signal.
    ///
    /// Cancelling the task kills the program.
    package func end() async throws -> Int32 {
        let code = Watched<Int32?>(nil)
        Thread.detachNewThread { [self] in
            // This waits outside `change`, because cancelling the task needs the lock that `change` holds.
            let end = waitForExit()
            code.change { $0 = end }
        }
        do {
            return try await code.value { $0 }
        } catch {
            signal(SIGKILL)
            throw error
        }
    }

    /// Waits without reaping: the process stays a zombie, so that its number is not reused and no other process is signaled.
    private static func awaitEnd(of process: pid_t) {
        var information = siginfo_t()
        while waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) == -1, errno == EINTR {}
    }

    @discardableResult
    private func waitForExit() -> Int32 {
        Self.awaitEnd(of: process)
        return code.withLock { code in
            if let code { return code }
            var status: Int32 = 0
            waitpid(process, &status, 0)
            let result = status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
            code = result
            return result
        }
    }
}

// MARK: Sockets

extension ServerProcess {
    /// A listening socket for a server that inherits it.
    static func listeningSocket() throws -> (descriptor: Int32, port: Int) { try socket(isListening: true) }

    private static func freePorts(_ count: Int) throws -> [Int] {
        var sockets: [(descriptor: Int32, port: Int)] = []
        defer { for socket in sockets { Glibc.close(socket.descriptor) } }
        for _ in 0..<count { sockets.append(try socket(isListening: false)) }
        return sockets.map(\.port)
    }

    private static func socket(
        kind: __socket_type = SOCK_STREAM, isListening: Bool
    ) throws -> (descriptor: Int32, port: Int) {
        let descriptor = Glibc.socket(AF_INET, Int32(kind.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Failure(description: "socket: errno \(errno)") }
        var address = LoopbackAddress()
        let isBound = address.call { pointer, length in
            bind(descriptor, pointer, length) == 0 && (!isListening || listen(descriptor, 1024) == 0)
                && getsockname(descriptor, pointer, &length) == 0
        }
        guard isBound == true else {
            Glibc.close(descriptor)
            throw Failure(description: "bind to 127.0.0.1: errno \(errno)")
        }
        return (descriptor, address.port)
    }

    private static func connects(to port: Int) -> Bool {
        let descriptor = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { Glibc.close(descriptor) }
        var address = LoopbackAddress(port: port)
        return address.call { pointer, length in connect(descriptor, pointer, length) == 0 } ?? false
    }

    /// Asks for a version of QUIC that no server knows, until a Version Negotiation packet arrives or the program ends.
    ///
    /// A port that is not open refuses the datagram; one that is lost is sent again.
    private static func answersQUIC(at port: Int, whileRuns process: pid_t) -> Bool {
        let descriptor = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { Glibc.close(descriptor) }
        var address = LoopbackAddress(port: port)
        guard address.call({ pointer, length in connect(descriptor, pointer, length) == 0 }) == true else { return false }
        let head: [UInt8] = [0xC0, 0x0A, 0x0A, 0x0A, 0x0A, 8] + Array(1...8) + [8] + Array(1...8)
        let question = head + [UInt8](repeating: 0, count: 1_200 - head.count)
        var answer = [UInt8](repeating: 0, count: 1_500)
        var end = siginfo_t()
        while waitid(P_PID, id_t(process), &end, WEXITED | WNOWAIT | WNOHANG) == 0, end.si_signo == 0 {
            _ = send(descriptor, question, question.count, Int32(MSG_NOSIGNAL))
            var events = [pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)]
            if poll(&events, 1, 20) > 0, recv(descriptor, &answer, answer.count, Int32(MSG_DONTWAIT)) > 0 { return true }
        }
        return false
    }
}
