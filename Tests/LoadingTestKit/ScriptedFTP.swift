// SPDX-License-Identifier: Apache-2.0

package import Foundation
import Glibc
import NIOSSL

/// An FTP server that behaves correctly except where a test's rule overrides it; one thread serves each control connection.
package final class ScriptedFTP: Sendable {
    package enum Failure: Error { case ended, noData, noURL }

    package struct File: Sendable {
        package var content: [UInt8]
        package var modified: String

        package init(content: [UInt8], modified: String = "20200202020202") {
            self.content = content
            self.modified = modified
        }
    }

    /// A command of a client.
    package struct Command: Sendable {
        package var word: String
        package var argument: String
        /// The number of earlier commands with the same word, on all connections.
        package var count: Int
    }

    /// Handles a command and returns true, or returns false, so that the server handles the command as usual.
    package typealias Rule = @Sendable (Visit, Command) throws -> Bool

    /// The server's side of TLS.
    package struct Security: Sendable {
        fileprivate let contexts: [NIOSSLContext]
        fileprivate let choice: @Sendable () -> Int
        fileprivate let isImplicit: Bool

        /// - Parameters:
        ///   - identities: Certificates and keys.
        ///   - isImplicit: Whether TLS begins with the first byte rather than with `AUTH TLS`.
        ///   - choice: The index of the identity for a control connection; its data connections use the same identity.
        /// - Throws: An error for invalid certificates.
        package init(
            _ identities: [TestCertificates.Identity], isImplicit: Bool = false, choice: @escaping @Sendable () -> Int = { 0 }
        ) throws {
            contexts = try identities.map {
                try NIOSSLContext(configuration: $0.serverConfiguration(versions: .v1_2 ... .v1_3))
            }
            self.isImplicit = isImplicit
            self.choice = choice
        }
    }

    package struct State: Sendable {
        package fileprivate(set) var files: [String: File]
        package fileprivate(set) var commands: [String] = []
        fileprivate var counts: [String: Int] = [:]
        package fileprivate(set) var connections = 0
        package fileprivate(set) var ends = 0
        package fileprivate(set) var dataConnections = 0
        /// The maximum number of control connections that the client had open at once.
        package fileprivate(set) var most = 0
        fileprivate var controls: Set<Int32> = []
        fileprivate var descriptors: Set<Int32> = []
        package fileprivate(set) var notes: [String] = []
    }

    package let port: Int
    private let listener: Int32
    package let state: Watched<State>
    fileprivate let security: Security?
    private let greeting: @Sendable (Visit) throws -> Void
    private let isSplit: Bool
    private let isIPv6: Bool
    private let rule: Rule

    /// - Parameters:
    ///   - files: The files by their absolute paths; `/home` is the initial directory.
    ///   - security: The TLS configuration; nil disables TLS.
    ///   - isSplit: Whether replies are sent byte by byte.
    ///   - isIPv6: Whether the server listens at ::1 instead of 127.0.0.1.
    ///   - greeting: Called when a client connects.
    ///   - rule: Overrides the server's behavior.
    /// - Throws: An error if the server cannot listen.
    package init(
        _ files: [String: File], security: Security? = nil, isSplit: Bool = false, isIPv6: Bool = false,
        greeting: @escaping @Sendable (Visit) throws -> Void, rule: @escaping Rule
    ) throws {
        state = Watched(State(files: files))
        self.security = security
        self.isSplit = isSplit
        self.isIPv6 = isIPv6
        self.greeting = greeting
        self.rule = rule
        (listener, port) = try Self.listener(isIPv6: isIPv6)
        Thread.detachNewThread { [self] in listen() }
    }

    /// The commands of all clients, line by line.
    package var commands: [String] { state.read(\.commands) }
    package var connectionCount: Int { state.read(\.connections) }
    package var dataCount: Int { state.read(\.dataConnections) }

    /// The command lines that begin with the word.
    package func commands(_ word: String) -> [String] { commands.filter { $0 == word || $0.hasPrefix(word + " ") } }

    package func content(_ path: String) -> [UInt8]? { state.read { $0.files[path]?.content } }

    package func change(_ path: String, _ file: File?) { state.change { $0.files[path] = file } }

    /// Waits for a command line that begins with the word.
    package func waitForCommand(_ word: String) async throws {
        try await state.value { $0.commands.contains { $0 == word || $0.hasPrefix(word + " ") } ? () : nil }
    }

    /// Records a note of a rule, for the test to wait for.
    package func note(_ text: String) { state.change { $0.notes.append(text) } }
    package func waitForNote(_ start: String) async throws -> String {
        try await state.value { $0.notes.first { $0.hasPrefix(start) } }
    }

    /// Waits until `count` control connections have ended.
    package func waitForEnds(_ count: Int = 1) async throws { try await state.value { $0.ends >= count ? () : nil } }

    /// Waits until no control connection is open.
    package func waitForAllEnds() async throws { try await state.value { $0.ends >= $0.connections ? () : nil } }

    package func url(_ path: String, user: String = "", scheme: String = "ftp", host: String = "127.0.0.1") throws -> URL {
        guard let url = URL(string: "\(scheme)://\(user)\(host):\(port)\(path)") else { throw Failure.noURL }
        return url
    }

    package func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        state.read { for descriptor in $0.descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) } }
    }

    fileprivate func newListener() throws -> (Int32, Int) { try Self.listener(isIPv6: isIPv6) }

    private static func listener(isIPv6: Bool) throws -> (Int32, Int) {
        guard isIPv6 else { return try LoopbackSocket.listener() }
        let descriptor = socket(AF_INET6, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_addr = in6addr_loopback
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(descriptor, pointer, length) == 0 && Glibc.listen(descriptor, 64) == 0
                    && getsockname(descriptor, pointer, &length) == 0
            }
        }
        guard isBound else { throw POSIXError(.EADDRNOTAVAIL) }
        return (descriptor, Int(UInt16(bigEndian: address.sin6_port)))
    }

    fileprivate func keep(_ descriptor: Int32) { state.change { _ = $0.descriptors.insert(descriptor) } }
    fileprivate func drop(_ descriptor: Int32) {
        state.change {
            $0.descriptors.remove(descriptor)
            $0.controls.remove(descriptor)
            close(descriptor)
        }
    }

    private func listen() {
        while true {
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else { break }
            let number = state.change { state in
                state.connections += 1
                state.descriptors.insert(descriptor)
                // A connection that the client has closed does not count, even if its thread has not noticed that yet.
                let others = state.controls.count { control in
                    var event = pollfd(fd: control, events: Int16(0x2000), revents: 0)
                    return poll(&event, 1, 0) == 0
                }
                state.controls.insert(descriptor)
                state.most = max(state.most, others + 1)
                return state.connections - 1
            }
            Thread.detachNewThread { [self] in
                let visit = Visit(self, FTPWire(descriptor, isSplit: isSplit), number)
                try? serve(visit)
                visit.control.endTLS()
                visit.leave()
                drop(descriptor)
                state.change { $0.ends += 1 }
            }
        }
        close(listener)
    }

    private func serve(_ visit: Visit) throws {
        if security?.isImplicit == true { try visit.secure() }
        try greeting(visit)
        while !visit.isOver, let line = visit.control.line() {
            // Telnet's control bytes before ABOR are not part of the command.
            let text = String(decoding: line.drop { $0 >= 0xF0 }, as: UTF8.self)
            let parts = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
            let word = String(parts[0]).uppercased()
            let count = state.change { state in
                state.commands.append(text)
                state.counts[word, default: 0] += 1
                return state.counts[word, default: 0] - 1
            }
            let command = Command(word: word, argument: parts.count > 1 ? String(parts[1]) : "", count: count)
            if try !rule(visit, command) { try visit.handle(command) }
        }
    }

    /// A control connection and its state.
    package final class Visit {
        package let server: ScriptedFTP
        package let control: FTPWire
        /// The number of the control connection at the server, counted from 0.
        package let number: Int
        package var folder = "/home"
        package var offset = 0
        package var isOver = false
        /// The index of the identity that was presented; nil in cleartext.
        package private(set) var identity: Int?
        private var hasPrivateData = false
        private var listener: Int32?

        fileprivate init(_ server: ScriptedFTP, _ control: FTPWire, _ number: Int) {
            self.server = server
            self.control = control
            self.number = number
            hasPrivateData = server.security?.isImplicit == true
        }

        /// Starts TLS on the control connection.
        fileprivate func secure() throws {
            guard let security = server.security else { return }
            let choice = security.choice()
            identity = choice
            try control.startTLS(security.contexts[choice])
        }

        package func say(_ line: String) throws { try control.write(line + "\r\n") }

        /// Waits until the client ends the control connection.
        package func waitForEnd() { while control.line() != nil {} }

        /// The absolute path of a name.
        package func path(_ name: String) -> String {
            if name.hasPrefix("/") { return name }
            return (folder == "/" ? "" : folder) + "/" + name
        }

        package func file(_ name: String) -> File? { server.state.read { $0.files[path(name)] } }

        /// Opens a port for a data connection.
        package func open() throws -> Int {
            shut()
            let (descriptor, port) = try server.newListener()
            server.keep(descriptor)
            listener = descriptor
            return port
        }

        /// Accepts the data connection; throws if the client disconnects.
        package func take<Result>(_ body: (FTPWire) throws -> Result) throws -> Result {
            guard let listener else { throw Failure.noData }
            var events = [
                pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
                pollfd(fd: control.descriptor, events: Int16(0x2000), revents: 0),
            ]
            _ = poll(&events, 2, -1)
            guard events[0].revents & Int16(POLLIN) != 0 else { throw Failure.ended }
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else { throw Failure.ended }
            shut()
            server.keep(descriptor)
            server.state.change { $0.dataConnections += 1 }
            defer { server.drop(descriptor) }
            let data = FTPWire(descriptor)
            if hasPrivateData, let identity, let security = server.security { try data.startTLS(security.contexts[identity]) }
            let result = try body(data)
            data.endTLS()
            return result
        }

        fileprivate func leave() { shut() }

        private func shut() {
            if let listener { server.drop(listener) }
            listener = nil
        }

        /// Sends bytes over the data connection, between the two replies.
        package func send(_ bytes: [UInt8]) throws {
            try say("150 here it comes")
            try take { try $0.write(bytes) }
            try say("226 done")
        }

        // swift-format-ignore
        package func handle(_ command: Command) throws {
            let argument = command.argument
            switch command.word {
            case "AUTH" where server.security != nil && !control.isSecure:
                try say("234 go ahead")
                try secure()
            case "PBSZ" where control.isSecure: try say("200 fine")
            case "PROT" where control.isSecure:
                hasPrivateData = argument == "P"
                try say("200 fine")
            case "USER": try say("331 and the password?")
            case "PASS": try say("230 welcome")
            case "PWD": try say("257 \"\(folder)\" is it")
            case "CWD":
                let new = path(argument)
                let exists = new == "/" || server.state.read { $0.files.keys.contains { $0.hasPrefix(new + "/") } }
                if exists { folder = new }
                try say(exists ? "250 changed" : "550 no such folder")
            case "TYPE", "MODE", "STRU", "OPTS", "NOOP", "CLNT", "ALLO": try say("200 fine")
            case "SYST": try say("215 UNIX Type: L8")
            case "FEAT": try control.write("211-Features:\r\n EPSV\r\n MDTM\r\n REST STREAM\r\n SIZE\r\n UTF8\r\n211 End\r\n")
            case "SIZE": try say(file(argument).map { "213 \($0.content.count)" } ?? "550 no such file")
            case "MDTM": try say(file(argument).map { "213 \($0.modified)" } ?? "550 no such file")
            case "REST":
                offset = Int(argument) ?? 0
                try say("350 from \(offset)")
            case "EPSV": try say("229 Entering Extended Passive Mode (|||\(try open())|)")
            case "PASV":
                let port = try open()
                try say("227 Entering Passive Mode (127,0,0,1,\(port / 256),\(port % 256))")
            case "RETR":
                defer { offset = 0 }
                guard let file = file(argument) else { return try say("550 no such file") }
                try send(Array(file.content.dropFirst(offset)))
            case "LIST", "NLST":
                let names = server.state.read { $0.files.keys.filter { $0.hasPrefix(self.path("")) }.sorted() }
                try send(Array(names.map { $0 + "\r\n" }.joined().utf8))
            case "STOR", "APPE":
                defer { offset = 0 }
                try say("150 go ahead")
                let bytes = try take { $0.rest() }
                let old = file(argument)?.content ?? []
                let kept = command.word == "APPE" ? old : Array(old.prefix(offset))
                server.change(path(argument), File(content: kept + bytes))
                try say("226 stored")
            case "ABOR": try say("226 aborted")
            case "QUIT":
                try say("221 bye")
                isOver = true
            default: try say("502 not here")
            }
        }
    }
}
