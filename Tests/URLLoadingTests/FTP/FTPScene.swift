//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import Glibc
import LoadingTestKit
import URLLoading

/// A TCP connection of a scripted FTP server; used by one thread alone.
final class FTPWire {
    let descriptor: Int32
    /// Whether each byte is sent by itself.
    private let isSplit: Bool
    private var buffer: [UInt8] = []

    init(_ descriptor: Int32, isSplit: Bool = false) {
        self.descriptor = descriptor
        self.isSplit = isSplit
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }

    func write(_ text: String) throws { try write(Array(text.utf8)) }

    func write(_ bytes: [UInt8]) throws {
        let pieces = isSplit ? bytes.map { [$0] } : [bytes]
        for piece in pieces {
            guard LoopbackSocket.send(piece, descriptor) else { throw ScriptedFTP.Failure.ended }
            if isSplit { sched_yield() }
        }
    }

    /// Sends what fits, until the client has taken nothing for a while.
    /// - Returns: How many bytes the socket took.
    func writeUntilStalled(_ bytes: [UInt8], milliseconds: Int32 = 700) throws -> Int {
        var count = 0
        while count < bytes.count {
            var event = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard poll(&event, 1, milliseconds) > 0 else { return count }
            let sent = bytes[count...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(0x40))
            }
            guard sent > 0 || errno == EAGAIN else { throw ScriptedFTP.Failure.ended }
            count += max(0, sent)
        }
        return count
    }

    /// A line without its CRLF; nil at the end.
    func line() -> [UInt8]? {
        while true {
            if let end = buffer.firstRange(of: [13, 10]) {
                defer { buffer.removeFirst(end.upperBound) }
                return Array(buffer[..<end.lowerBound])
            }
            guard fill() else { return nil }
        }
    }

    /// What comes until the client's end.
    func rest() -> [UInt8] {
        while fill() {}
        defer { buffer = [] }
        return buffer
    }

    /// At least so many bytes, or all that there are.
    func take(_ count: Int) -> [UInt8] {
        while buffer.count < count, fill() {}
        defer { buffer = [] }
        return buffer
    }

    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    private func fill() -> Bool {
        var piece = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &piece, piece.count, 0)
        guard count > 0 else { return false }
        buffer += piece[..<count]
        return true
    }
}

/// An FTP server that behaves, except where a test says otherwise; a thread serves each control connection.
final class ScriptedFTP: Sendable {
    enum Failure: Error { case ended, noData }

    struct File: Sendable {
        var content: [UInt8]
        var modified = "20200202020202"
    }

    /// A line of a client.
    struct Order: Sendable {
        var word: String
        var argument: String
        /// How many of the word came before, to the whole server.
        var count: Int
    }

    /// Returns true where it did all that the order wants.
    typealias Rule = @Sendable (Visit, Order) throws -> Bool

    struct State: Sendable {
        var files: [String: File]
        var orders: [String] = []
        var counts: [String: Int] = [:]
        var connections = 0
        var ends = 0
        var dataConnections = 0
        /// The most control connections that the client had at a time.
        var most = 0
        var controls: Set<Int32> = []
        var descriptors: Set<Int32> = []
        var notes: [String] = []
    }

    let port: Int
    private let listener: Int32
    let state: Watched<State>
    private let greeting: @Sendable (Visit) throws -> Void
    private let isSplit: Bool
    private let isIPv6: Bool
    private let rule: Rule

    init(
        _ files: [String: File], isSplit: Bool = false, isIPv6: Bool = false,
        greeting: @escaping @Sendable (Visit) throws -> Void, rule: @escaping Rule
    ) throws {
        state = Watched(State(files: files))
        self.isSplit = isSplit
        self.isIPv6 = isIPv6
        self.greeting = greeting
        self.rule = rule
        (listener, port) = try Self.listener(isIPv6: isIPv6)
        Thread.detachNewThread { [self] in listen() }
    }

    /// What clients said, line by line.
    var orders: [String] { state.read(\.orders) }
    var connectionCount: Int { state.read(\.connections) }
    var dataCount: Int { state.read(\.dataConnections) }

    /// The lines that begin with the word.
    func orders(_ word: String) -> [String] { orders.filter { $0 == word || $0.hasPrefix(word + " ") } }

    func content(_ path: String) -> [UInt8]? { state.read { $0.files[path]?.content } }

    func change(_ path: String, _ file: File?) { state.change { $0.files[path] = file } }

    /// Waits for a line that begins with the word.
    func heard(_ word: String) async throws {
        try await state.value { $0.orders.contains { $0 == word || $0.hasPrefix(word + " ") } ? () : nil }
    }

    /// Notes what a rule saw, for the test to wait for.
    func note(_ text: String) { state.change { $0.notes.append(text) } }
    func noted(_ start: String) async throws -> String { try await state.value { $0.notes.first { $0.hasPrefix(start) } } }

    /// Waits until as many control connections have ended.
    func waitForEnds(_ count: Int = 1) async throws { try await state.value { $0.ends >= count ? () : nil } }

    func url(_ path: String, user: String = "", scheme: String = "ftp", host: String = "127.0.0.1") throws -> URL {
        guard let url = URL(string: "\(scheme)://\(user)\(host):\(port)\(path)") else { throw URLError(.badURL) }
        return url
    }

    func stop() {
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
            state.change { state in
                state.connections += 1
                state.descriptors.insert(descriptor)
                // One that the client has closed does not count, though the thread may not know yet.
                let others = state.controls.count { control in
                    var event = pollfd(fd: control, events: Int16(0x2000), revents: 0)
                    return poll(&event, 1, 0) == 0
                }
                state.controls.insert(descriptor)
                state.most = max(state.most, others + 1)
            }
            Thread.detachNewThread { [self] in
                let visit = Visit(self, FTPWire(descriptor, isSplit: isSplit))
                try? serve(visit)
                visit.leave()
                drop(descriptor)
                state.change { $0.ends += 1 }
            }
        }
        close(listener)
    }

    private func serve(_ visit: Visit) throws {
        try greeting(visit)
        while !visit.isOver, let line = visit.control.line() {
            // Telnet's signs before ABOR are no part of it.
            let text = String(decoding: line.drop { $0 >= 0xF0 }, as: UTF8.self)
            let parts = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
            let word = String(parts[0]).uppercased()
            let count = state.change { state in
                state.orders.append(text)
                state.counts[word, default: 0] += 1
                return state.counts[word, default: 0] - 1
            }
            let order = Order(word: word, argument: parts.count > 1 ? String(parts[1]) : "", count: count)
            if try !rule(visit, order) { try visit.obey(order) }
        }
    }

    /// One control connection and what belongs to it.
    final class Visit {
        let server: ScriptedFTP
        let control: FTPWire
        var folder = "/home"
        var offset = 0
        var isOver = false
        private var listener: Int32?

        fileprivate init(_ server: ScriptedFTP, _ control: FTPWire) {
            self.server = server
            self.control = control
        }

        func say(_ line: String) throws { try control.write(line + "\r\n") }

        /// Waits until the client ends the control connection.
        func waitForEnd() { while control.line() != nil {} }

        /// The absolute path of a name.
        func path(_ name: String) -> String {
            if name.hasPrefix("/") { return name }
            return (folder == "/" ? "" : folder) + "/" + name
        }

        func file(_ name: String) -> File? { server.state.read { $0.files[path(name)] } }

        /// Opens a port for a data connection.
        func open() throws -> Int {
            shut()
            let (descriptor, port) = try server.newListener()
            server.keep(descriptor)
            listener = descriptor
            return port
        }

        /// Takes the data connection, or throws where the client goes.
        func take<Result>(_ body: (FTPWire) throws -> Result) throws -> Result {
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
            return try body(FTPWire(descriptor))
        }

        fileprivate func leave() { shut() }

        private func shut() {
            if let listener { server.drop(listener) }
            listener = nil
        }

        /// Sends bytes over the data connection, between its two replies.
        func send(_ bytes: [UInt8]) throws {
            try say("150 here it comes")
            try take { try $0.write(bytes) }
            try say("226 done")
        }

        // swift-format-ignore
        fileprivate func obey(_ order: Order) throws {
            let argument = order.argument
            switch order.word {
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
                let kept = order.word == "APPE" ? old : Array(old.prefix(offset))
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

/// Runs a test with such a server and a session.
func withFTP(
    _ files: [String: [UInt8]] = ["/home/a.bin": Array("hello".utf8)], delegate: (any URLSessionDelegate)? = nil,
    isSplit: Bool = false, isIPv6: Bool = false, configure: (URLSessionConfiguration) -> Void = { _ in },
    greeting: @escaping @Sendable (ScriptedFTP.Visit) throws -> Void = { try $0.say("220 ready") },
    rule: @escaping ScriptedFTP.Rule = { _, _ in false }, test: (ScriptedFTP, URLSession) async throws -> Void
) async throws {
    let server = try ScriptedFTP(
        files.mapValues { ScriptedFTP.File(content: $0) }, isSplit: isSplit, isIPv6: isIPv6, greeting: greeting, rule: rule)
    defer { server.stop() }
    try await withSession(delegate: delegate, configure) { (session) async throws in try await test(server, session) }
}

/// The same with a rule and the usual greeting.
func withFTP(
    _ files: [String: [UInt8]] = ["/home/a.bin": Array("hello".utf8)], delegate: (any URLSessionDelegate)? = nil,
    configure: (URLSessionConfiguration) -> Void = { _ in }, _ rule: @escaping ScriptedFTP.Rule,
    test: (ScriptedFTP, URLSession) async throws -> Void
) async throws {
    try await withFTP(
        files, delegate: delegate, configure: configure, greeting: { try $0.say("220 ready") }, rule: rule, test: test)
}
