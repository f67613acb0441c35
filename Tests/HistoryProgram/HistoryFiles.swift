// SPDX-License-Identifier: Apache-2.0

import Foundation
import HistoryModel
import LoadingTestKit

/// The FTP servers of a history: one without TLS, one with `AUTH TLS`, and one with TLS from the first byte.
///
/// An FTP client does not tell the server which load it executes, so only one load runs at a time.
final class HistoryFiles: Sendable {
    private struct Expected: Sendable {
        var load: Int
        var page: Page
        var origin: Origin
        var hold: String?
        let gate = ThreadGate()
    }

    private struct Visitor: Sendable {
        var expected: Expected?
        var user = ""
        /// The password that was accepted.
        var password: String?
    }

    private struct State: Sendable {
        var expected: Expected?
        /// The clients, by server and connection.
        var visitors: [String: [Int: Visitor]] = [:]
        var held: Set<Int> = []
        var cut: Set<Int> = []
    }

    private static let identities: [Identity] = [.valid, .unknown, .expired]

    private let content: HistoryServers.Content
    private let state: Watched<State>
    private let servers: [String: ScriptedFTP]

    init(_ certificates: TestCertificates, _ content: HistoryServers.Content) throws {
        let state = Watched(State())
        let chain = [certificates.valid, certificates.unknownAuthority, certificates.expired]
        let choice: @Sendable () -> Int = {
            Self.identities.firstIndex(of: content.state.withLock { $0.identity }) ?? 0
        }
        var servers: [String: ScriptedFTP] = [:]
        for name in ["ftp", "ftp-secure", "ftps"] {
            let security =
                name == "ftp" ? nil : try ScriptedFTP.Security(chain, isImplicit: name == "ftps", choice: choice)
            servers[name] = try ScriptedFTP(
                [:], security: security,
                greeting: { visit in
                    state.change { $0.visitors[name, default: [:]][visit.number] = Visitor(expected: $0.expected) }
                    try visit.say("220 ready")
                },
                rule: { try Self.obey($1, $0, name, state, content) })
        }
        (self.servers, self.state, self.content) = (servers, state, content)
    }

    func port(of name: String) -> Int { servers[name]?.port ?? 0 }

    /// Sets the load that the next connection belongs to.
    func expect(_ load: Int, _ step: LoadStep, hold: String?) {
        state.change { $0.expected = Expected(load: load, page: step.page, origin: step.origin, hold: hold) }
    }

    /// The content that a load has stored at a server.
    func stored(at name: String) -> String? {
        servers[name]?.content("/home/\(Page.send)").map { String(decoding: $0, as: UTF8.self) }
    }

    func has(_ name: String) -> Bool { servers[name] != nil }

    /// Waits until the response to a load is held back.
    func held(_ load: Int) async throws { try await state.value { $0.held.contains(load) ? () : nil } }

    func open(_ load: Int) {
        guard let expected = state.read(\.expected), expected.load == load else { return }
        expected.gate.open()
    }

    func allClosed() async throws { for server in servers.values { try await server.waitForAllEnds() } }

    var openConnections: Int { servers.values.reduce(0) { $0 + $1.state.read { $0.connections - $0.ends } } }

    func stop() { for server in servers.values { server.stop() } }

    // MARK: Server behavior

    private static func obey(
        _ order: ScriptedFTP.Command, _ visit: ScriptedFTP.Visit, _ name: String, _ state: Watched<State>,
        _ content: HistoryServers.Content
    ) throws -> Bool {
        var visitor = state.read { $0.visitors[name]?[visit.number] } ?? Visitor()
        // A later load continues on the idle connection of an earlier one.
        if let password = visitor.password, let expected = state.read(\.expected), expected.load != visitor.expected?.load,
            !["QUIT", "ABOR"].contains(order.word)
        {
            visitor.expected = expected
            state.change { [visitor] in $0.visitors[name]?[visit.number] = visitor }
            guard mayLoad(expected, visitor.user, password) else {
                try visit.say("421 log in again")
                visit.isOver = true
                return true
            }
            begin(expected, visitor.user, password, visit, name, content)
        }
        switch order.word {
        case "USER":
            state.change { $0.visitors[name]?[visit.number]?.user = order.argument }
            try visit.say("331 and the password?")
        case "PASS":
            if try logIn(order.argument, visitor, visit, name, content) {
                state.change { $0.visitors[name]?[visit.number]?.password = order.argument }
            }
        case "RETR":
            guard let expected = visitor.expected, let hold = expected.hold, let file = visit.file(order.argument) else {
                return false
            }
            let bytes = Array(file.content.dropFirst(visit.offset))
            if hold == "cut" {
                guard state.change({ $0.cut.insert(expected.load).inserted }) else { return false }
                return try cut(bytes, visit)
            }
            try send(bytes, visit, after: hold == "head" ? 0 : bytes.count / 2) {
                state.change { _ = $0.held.insert(expected.load) }
                expected.gate.wait()
            }
        default: return false
        }
        return true
    }

    private static func principal(_ user: String, _ password: String) -> Principal? {
        Principal(rawValue: user).flatMap { $0.password == password ? $0 : nil }
    }

    private static func isAnonymous(_ user: String, _ password: String) -> Bool {
        user == "anonymous" && password == "anonymous@"
    }

    private static func mayLoad(_ expected: Expected, _ user: String, _ password: String) -> Bool {
        principal(user, password)?.isKnown ?? (isAnonymous(user, password) && !expected.page.isGuarded)
    }

    /// Records a login, and answers it; returns whether it is accepted.
    private static func logIn(
        _ password: String, _ visitor: Visitor, _ visit: ScriptedFTP.Visit, _ name: String, _ content: HistoryServers.Content
    ) throws -> Bool {
        guard let expected = visitor.expected else {
            try visit.say("530 for which load?")
            return false
        }
        begin(expected, visitor.user, password, visit, name, content)
        let isAccepted = mayLoad(expected, visitor.user, password)
        try visit.say(isAccepted ? "230 welcome" : "530 not you")
        return isAccepted
    }

    /// Records the login of a load, and creates the file with the load's page if the login permits that.
    private static func begin(
        _ expected: Expected, _ user: String, _ password: String, _ visit: ScriptedFTP.Visit, _ name: String,
        _ content: HistoryServers.Content
    ) {
        var seen = SeenRequest(load: expected.load, server: name, page: expected.page, method: "FTP")
        seen.identity = visit.identity.map { identities[$0] }
        seen.credential =
            principal(user, password).flatMap { Proof.userInfo.credential(of: $0) }
            ?? (isAnonymous(user, password) ? nil : "unknown:\(user) \(password)")
        content.state.withLock { [seen] in $0.requests.append(seen) }
        guard mayLoad(expected, user, password), expected.page != .send else { return }
        let version = content.version(of: expected.page, at: expected.origin)
        // A page that can be resumed is the same for all loads with the same login.
        let isLong = expected.page == .long
        var head = PageHead(
            load: isLong ? 0 : expected.load, server: name, identity: seen.identity, page: expected.page, version: version,
            lines: isLong ? 1500 : 10 + expected.load % 7 * 40)
        (head.credential, head.mark) = (seen.credential, PageText.mark)
        let modified = "202002020202" + String(format: "%02d", version % 60)
        let file = ScriptedFTP.File(content: Array(PageText.text(head).utf8), modified: modified)
        visit.server.change("/home/\(expected.page)", file)
    }

    /// Sends a file, and performs an action partway.
    private static func send(
        _ bytes: [UInt8], _ visit: ScriptedFTP.Visit, after count: Int, _ act: @Sendable () -> Void
    ) throws {
        if count == 0 { act() }
        try visit.say("150 here it comes")
        try visit.take { data in
            guard count > 0 else { return try data.write(bytes) }
            try data.write(Array(bytes[..<count]))
            act()
            try data.write(Array(bytes[count...]))
        }
        visit.offset = 0
        try visit.say("226 done")
    }

    /// Sends half of a file, and then either reports the loss or ends the control connection.
    private static func cut(_ bytes: [UInt8], _ visit: ScriptedFTP.Visit) throws -> Bool {
        try visit.say("150 here it comes")
        try visit.take { data in
            try data.write(Array(bytes[..<(bytes.count / 2)]))
            data.cutTLS()
        }
        visit.offset = 0
        if visit.number.isMultiple(of: 2) { try visit.say("426 lost") } else { visit.isOver = true }
        return true
    }
}
