// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing
import TransportMachines

/// Loads that continue where another load has left the control connection.
@Suite struct FTPStandingTests {
    private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    private static func plan(
        _ directories: [String] = [], name: String? = "f", _ transfer: FTPPlan.Transfer = .retrieve,
        security: FTPPlan.Security = .none
    ) -> FTPPlan {
        FTPPlan(security: security, directories: directories.map(bytes), name: name.map(bytes), transfer: transfer)
    }

    /// The commands of a load, with a server that carries out each of them, except for those in `answers`.
    private static func commands(
        _ machine: inout FTPMachine, continuing standing: FTPStanding? = nil, _ answers: [String: FTPReply] = [:]
    ) -> [String] {
        let replies =
            [
                "USER": (331, ""), "PASS": (230, ""), "PWD": (257, "\"/home\""), "CWD": (250, ""), "TYPE": (200, ""),
                "SIZE": (213, "9"), "MDTM": (213, "20200203040506"), "EPSV": (229, "(|||4000|)"), "PASV": (227, "1,2,3,4,5,6"),
                "RETR": (150, ""), "LIST": (150, ""), "STOR": (150, ""),
            ].mapValues { FTPReply(code: $0.0, text: $0.1) }.merging(answers) { $1 }
        var events = [FTPMachine.Event.opened(isIPv6: false, port: 21, continuing: standing)]
        if standing == nil { events.append(.replied(FTPReply(code: 220, text: ""))) }
        var log: [String] = []
        while !events.isEmpty {
            for action in machine.handle(events.removeFirst()) {
                switch action {
                case .send(let command):
                    log.append(String(decoding: command.line.dropLast(2), as: UTF8.self))
                    if let reply = replies[command.verb] { events.append(.replied(reply)) }
                case .findLogin: events.append(.login(user: bytes("ada"), password: bytes("secret")))
                case .connect: events.append(.connected)
                case .begin: if !machine.isOver { events += [.dataEnded(9), .replied(FTPReply(code: 226, text: ""))] }
                case .reconnect: log.append("[reconnect]")
                case .fail(let failure): log.append("[\(failure.kind)]")
                case .loggedIn, .secure, .secureData, .expectEnd, .end: break
                }
            }
        }
        return log
    }

    /// Where a load of `f` in the directories leaves the connection.
    private static func standing(in directories: [String], _ answers: [String: FTPReply] = [:]) throws -> FTPStanding {
        var machine = FTPMachine(plan(directories))
        _ = commands(&machine, answers)
        try #require(machine.isReusable)
        return machine.standing
    }

    @Test(
        arguments: [
            (["a", "b"], []), (["a", "b", "c"], ["CWD c"]), (["a"], ["CWD /home", "CWD a"]), ([], ["CWD /home"]),
            (["c", "b"], ["CWD /home", "CWD c", "CWD b"]), (["/", "x"], ["CWD /", "CWD x"]), (["/etc"], ["CWD /etc"]),
        ] as [([String], [String])])
    func `the next load changes only to the directory that it needs`(_ directories: [String], changes: [String]) throws {
        let standing = try Self.standing(in: ["a", "b"])
        let plan = Self.plan(directories)
        #expect(standing.serves(plan, user: Self.bytes("ada"), password: Self.bytes("secret")))
        var machine = FTPMachine(plan)
        #expect(Self.commands(&machine, continuing: standing) == changes + ["SIZE f", "EPSV", "MDTM f", "RETR f"])
        #expect(machine.isReusable)
        // Back again.
        var other = FTPMachine(Self.plan(["a", "b"]))
        #expect(Self.commands(&other, continuing: machine.standing).suffix(4) == ["SIZE f", "EPSV", "MDTM f", "RETR f"])
    }

    @Test func `the transfer type changes with the kind of transfer`() throws {
        let standing = try Self.standing(in: [])
        var machine = FTPMachine(Self.plan(name: nil, .list))
        #expect(Self.commands(&machine, continuing: standing) == ["TYPE A", "EPSV", "LIST"])
        var again = FTPMachine(Self.plan(name: nil, .list))
        #expect(Self.commands(&again, continuing: machine.standing) == ["EPSV", "LIST"])
        var file = FTPMachine(Self.plan())
        #expect(Self.commands(&file, continuing: again.standing) == ["TYPE I", "SIZE f", "EPSV", "MDTM f", "RETR f"])
    }

    @Test func `PASV remains in use`() throws {
        let standing = try Self.standing(in: [], ["EPSV": FTPReply(code: 500, text: "")])
        var machine = FTPMachine(Self.plan())
        #expect(Self.commands(&machine, continuing: standing) == ["SIZE f", "PASV", "MDTM f", "RETR f"])
    }

    @Test func `only a load with the same login, the same security and a known way continues`() throws {
        let (user, password) = (Self.bytes("ada"), Self.bytes("secret"))
        let standing = try Self.standing(in: ["a"])
        #expect(standing.serves(Self.plan(["a"]), user: user, password: password))
        #expect(!standing.serves(Self.plan(["a"]), user: user, password: Self.bytes("wrong")))
        #expect(!standing.serves(Self.plan(["a"]), user: Self.bytes("bob"), password: password))
        #expect(!standing.serves(Self.plan(["a"], security: .explicit), user: user, password: password))
        #expect(!"\(standing)".contains("secret"))
        let lost = try Self.standing(in: ["a"], ["PWD": FTPReply(code: 502, text: "")])
        #expect(!lost.serves(Self.plan(["b"]), user: user, password: password))
        #expect(lost.serves(Self.plan(["a", "b"]), user: user, password: password))
        #expect(lost.serves(Self.plan(["/etc"]), user: user, password: password))
    }

    @Test(arguments: [FTPMachine.Event.controlEnded, .replied(FTPReply(code: 421, text: "timeout"))])
    func `a load reconnects only if the server has closed the idle connection`(_ event: FTPMachine.Event) throws {
        let standing = try Self.standing(in: [])
        var machine = FTPMachine(Self.plan())
        _ = machine.handle(.opened(isIPv6: false, port: 21, continuing: standing))
        #expect(machine.handle(event) == [.reconnect])
        #expect(machine.isOver && !machine.isReusable)
        machine = FTPMachine(Self.plan())
        _ = machine.handle(.opened(isIPv6: false, port: 21, continuing: standing))
        _ = machine.handle(.replied(FTPReply(code: 213, text: "9")))
        guard case .fail(let failure)? = machine.handle(event).first else {
            Issue.record("no failure")
            return
        }
        #expect(failure.kind == .lost)
    }

    @Test(arguments: [
        ("RETR", 550, true), ("CWD", 550, true), ("RETR", 451, false), ("RETR", 421, false), ("TYPE", 500, false),
        ("EPSV", 425, false),
    ])
    func `a connection is left only in a known state`(_ command: String, code: Int, isReusable: Bool) {
        var machine = FTPMachine(Self.plan(["d"]))
        let refusal = FTPReply(code: code, text: "")
        _ = Self.commands(&machine, [command: refusal, "PASV": refusal])
        #expect(machine.isOver)
        #expect(machine.isReusable == isReusable)
    }
}
