// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import SeededNumbers
import Testing
import TransportMachines

/// The sequence of an FTP load, with given replies and with random events.
@Suite struct FTPMachineTests {
    private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    private static func plan(
        _ transfer: FTPPlan.Transfer = .retrieve, security: FTPPlan.Security = .none, directories: [String] = [],
        name: String? = "f"
    ) -> FTPPlan {
        FTPPlan(security: security, directories: directories.map(bytes), name: name.map(bytes), transfer: transfer)
    }

    /// Replies like a correct server unless `answers` has another reply, and logs the actions.
    private struct Play {
        var machine: FTPMachine
        var log: [String] = []
        var answers: [String: String]
        var login = ("anonymous", "anonymous@")
        /// The ports that refuse the data connection.
        var refusedPorts: Set<Int> = []

        init(_ plan: FTPPlan, _ answers: [String: String] = [:]) {
            machine = FTPMachine(plan)
            self.answers = [
                "greeting": "220 hi", "AUTH": "234 go", "USER": "331 who", "PASS": "230 in", "PBSZ": "200 ok", "PROT": "200 ok",
                "PWD": "257 \"/home\"", "CWD": "250 ok",
                "TYPE": "200 ok", "SIZE": "213 100", "MDTM": "213 20200203040506", "EPSV": "229 (|||4000|)",
                "PASV": "227 (9,9,9,9,1,2)",
                "REST": "350 ok", "RETR": "150 here", "LIST": "150 here", "NLST": "150 here", "STOR": "150 send",
                "APPE": "150 send", "end": "226 done",
            ].merging(answers) { $1 }
        }

        mutating func handle(_ event: FTPMachine.Event) {
            for action in machine.handle(event) { perform(action) }
        }

        mutating func reply(_ name: String) {
            guard let text = answers[name] else { return handle(.controlEnded) }
            var reader = FTPReplyReader()
            reader.append(Array((text + "\r\n").utf8))
            while let reply = try? reader.next() { handle(.replied(reply)) }
        }

        mutating func perform(_ action: FTPMachine.Action) {
            switch action {
            case .send(let command):
                log.append(String(decoding: command.line.dropLast(2), as: UTF8.self))
                reply(command.verb)
            case .secure:
                log.append("[tls]")
                handle(.secured)
            case .findLogin(let refusal):
                if refusal != nil { log.append("[refused]") }
                handle(.login(user: Array(login.0.utf8), password: Array(login.1.utf8)))
            case .loggedIn: log.append("[in]")
            case .reconnect: log.append("[reconnect]")
            case .connect(let port):
                log.append("[connect \(port)]")
                handle(refusedPorts.contains(port) ? .connectionRefused : .connected)
            case .secureData:
                log.append("[data tls]")
                handle(.dataSecured)
            case .begin(let beginning): log.append("[begin \(beginning.size ?? -1) \(beginning.offset)]")
            case .expectEnd: log.append("[expect]")
            case .end: log.append("[end]")
            case .fail(let failure): log.append("[\(failure.kind)]")
            }
        }

        mutating func run(count: Int64 = 100) -> [String] {
            handle(.opened(isIPv6: false, port: 21))
            if !machine.isOver, log.last != "[tls]" || true { reply("greeting") }
            if log.last?.hasPrefix("[begin") == true {
                handle(.dataEnded(count))
                if !machine.isOver { reply("end") }
            }
            return log
        }
    }

    private static let start = ["USER anonymous", "PASS anonymous@", "[in]"]

    private func run(_ plan: FTPPlan, _ answers: [String: String] = [:], count: Int64 = 100) -> [String] {
        var play = Play(plan, answers)
        return play.run(count: count)
    }

    @Test func `a file is retrieved`() {
        #expect(
            run(Self.plan(directories: ["a", "b c"])) == Self.start + [
                "PWD", "CWD a", "CWD b c", "TYPE I", "SIZE f", "EPSV", "MDTM f", "[connect 4000]", "RETR f", "[begin 100 0]",
                "[end]",
            ])
    }

    @Test func `a directory is listed`() {
        #expect(
            run(Self.plan(.list, name: nil)) == Self.start + [
                "TYPE A", "EPSV", "[connect 4000]", "LIST", "[begin -1 0]", "[end]",
            ])
        #expect(
            run(Self.plan(.listNames, name: nil)) == Self.start + [
                "TYPE A", "EPSV", "[connect 4000]", "NLST", "[begin -1 0]", "[end]",
            ])
    }

    @Test func `TLS starts before the login, and the data connection is protected`() {
        let rest = [
            "PBSZ 0", "PROT P", "TYPE I", "SIZE f", "EPSV", "MDTM f", "[connect 4000]", "RETR f", "[data tls]", "[begin 100 0]",
            "[end]",
        ]
        #expect(run(Self.plan(security: .explicit)) == ["AUTH TLS", "[tls]"] + Self.start + rest)
        #expect(run(Self.plan(security: .implicit)) == ["[tls]"] + Self.start + rest)
    }

    @Test(arguments: ["500 what", "530 no", "331 hm", "200 ok"])
    func `nothing is sent without TLS if the server refuses TLS`(_ answer: String) {
        #expect(run(Self.plan(security: .explicit), ["AUTH": answer]) == ["AUTH TLS", "[notSecure]"])
    }

    @Test(arguments: ["PBSZ", "PROT"])
    func `nothing is requested over an unprotected data connection`(_ command: String) {
        #expect(run(Self.plan(security: .explicit), [command: "536 no"]).last == "[notSecure]")
    }

    @Test func `PASV is used if EPSV is unknown, and its address is ignored`() {
        #expect(run(Self.plan(), ["EPSV": "500 what"]).contains("[connect 258]"))
        var play = Play(Self.plan(), ["EPSV": "500 what"])
        play.handle(.opened(isIPv6: true, port: 21))
        play.reply("greeting")
        #expect(play.log.suffix(2) == ["EPSV", "[refused]"])
    }

    @Test(arguments: ["229 nothing", "350 go on", "200 fine", "229 (|||21|)", "229 (||6446|)", "227 (9,9,9,9,1,2)"])
    func `an odd reply to EPSV leads to PASV, once`(_ answer: String) {
        let log = run(Self.plan(), ["EPSV": answer])
        #expect(log.suffix(7) == ["EPSV", "PASV", "MDTM f", "[connect 258]", "RETR f", "[begin 100 0]", "[end]"])
        let odd = run(Self.plan(), ["EPSV": answer, "PASV": "227 nothing"])
        #expect(odd.suffix(3) == ["EPSV", "PASV", "[refused]"])
        #expect(run(Self.plan(), ["EPSV": answer, "PASV": "227 (9,9,9,9,0,21)"]).last == "[refused]")
    }

    @Test func `a port of EPSV that refuses leads to PASV, once`() {
        var play = Play(Self.plan())
        play.refusedPorts = [4000]
        #expect(
            play.run().dropFirst(5) == [
                "EPSV", "MDTM f", "[connect 4000]", "PASV", "[connect 258]", "RETR f", "[begin 100 0]", "[end]",
            ])
        play = Play(Self.plan())
        play.refusedPorts = [4000, 258]
        #expect(play.run().suffix(3) == ["PASV", "[connect 258]", "[noConnection]"])
        play = Play(Self.plan())
        play.refusedPorts = [4000]
        play.handle(.opened(isIPv6: true, port: 21))
        play.reply("greeting")
        #expect(play.log.suffix(2) == ["[connect 4000]", "[noConnection]"])
    }

    @Test func `a description of a file or directory needs no data connection`() {
        #expect(run(Self.plan(.describe)) == Self.start + ["TYPE I", "SIZE f", "MDTM f", "[begin 100 0]", "[end]"])
        #expect(
            run(Self.plan(.describe, directories: ["d"], name: nil)) == Self.start + [
                "PWD", "CWD d", "TYPE I", "[begin -1 0]", "[end]",
            ])
        let outcomes = [
            ("550 no", "550 no", "[noSuchFile]"), ("550 no", "500 what", "[noSuchFile]"), ("500 what", "502 what", "[refused]"),
            ("550 no", "213 20200203040506", "[end]"), ("213 5", "550 no", "[end]"),
        ]
        for (size, time, outcome) in outcomes {
            #expect(run(Self.plan(.describe), ["SIZE": size, "MDTM": time]).last == outcome, "\(size), \(time)")
        }
    }

    @Test(arguments: [
        ("greeting", "530 TLS only"), ("USER", "530 Non-anonymous sessions must use encryption."),
        ("USER", "550 SSL/TLS required on the control channel"), ("PASS", "530-no\r\n530 Please use FTPS"), ("RETR", "522 no"),
        ("CWD", "530 Log in with TLS first"), ("EPSV", "534 policy"),
    ])
    func `a server that demands TLS is named as such`(_ command: String, answer: String) {
        let plan = Self.plan(directories: ["d"])
        var play = Play(plan, [command: answer, "PASV": answer])
        #expect(play.run().last == "[notSecure]")
        #expect(run(plan, ["RETR": "550 ssl.pem: no such file, nor tls"]).last == "[noSuchFile]")
    }

    @Test func `a download of the same version is resumed, and of another version restarted`() {
        var plan = Self.plan()
        plan.offset = 40
        plan.earlier = FTPPlan.Version(size: 100, modified: "20200203040506")
        let end = ["MDTM f", "[connect 4000]", "REST 40", "RETR f", "[begin 100 40]", "[end]"]
        #expect(run(plan, count: 60).suffix(6) == end[...])
        #expect(run(plan, ["REST": "502 no"]).suffix(2) == ["[begin 100 0]", "[end]"])
        for answers in [["SIZE": "213 101"], ["MDTM": "213 20200203040507"], ["MDTM": "550 no"], ["SIZE": "550 no"]] {
            let log = run(plan, answers, count: 101)
            #expect(!log.contains("REST 40"))
            #expect(log.last == "[end]")
        }
    }

    @Test func `fewer bytes than the size count as a lost connection, more do not`() {
        #expect(run(Self.plan(), count: 99).last == "[lost]")
        #expect(run(Self.plan(), count: 101).last == "[end]")
        #expect(run(Self.plan(), ["SIZE": "550 no"], count: 1).last == "[end]")
    }

    @Test(arguments: [
        ("426 cut", "[lost]"), ("451 oops", "[lost]"), ("552 full", "[tooLarge]"), ("250 fine", "[end]"), ("225 hm", "[lost]"),
    ])
    func `the final reply determines the outcome`(_ answer: String, outcome: String) {
        #expect(run(Self.plan(), ["end": answer]).last == outcome)
    }

    @Test func `a missing final reply counts as a lost connection`() {
        var play = Play(Self.plan(), ["end": "150 still"])
        #expect(play.run().last == "[begin 100 0]")
        play.handle(.controlEnded)
        #expect(play.log.last == "[lost]")
    }

    @Test(arguments: [FTPMachine.Event.dataEnded(50), .dataFailed, .waitTimedOut])
    func `data in flight is delivered before a lost connection is reported`(_ event: FTPMachine.Event) {
        for loss in [FTPMachine.Event.replied(FTPReply(code: 426, text: "cut")), .controlEnded] {
            var play = Play(Self.plan())
            play.handle(.opened(isIPv6: false, port: 21))
            play.reply("greeting")
            play.handle(loss)
            #expect(play.log.last == "[expect]")
            play.handle(event)
            #expect(play.log.last == "[lost]" || event == .dataFailed)
            play.handle(.waitTimedOut)
            #expect(play.log.last == "[lost]")
        }
    }

    @Test func `endless preliminary replies fail the load`() {
        var machine = FTPMachine(Self.plan())
        _ = machine.handle(.opened(isIPv6: false, port: 21))
        for _ in 0..<16 { #expect(machine.handle(.replied(FTPReply(code: 120, text: "wait"))) == []) }
        guard case .fail(let failure)? = machine.handle(.replied(FTPReply(code: 120, text: "wait"))).first else {
            return #expect(Bool(false))
        }
        #expect(failure.kind == .malformed)
    }

    @Test func `endless final replies fail the load`() {
        var play = Play(Self.plan())
        play.handle(.opened(isIPv6: false, port: 21))
        play.reply("greeting")
        play.reply("end")
        #expect(play.log.last == "[begin 100 0]")
        play.reply("end")
        #expect(play.log.last == "[malformed]")
    }

    @Test func `the control connection may close after the final reply`() {
        var play = Play(Self.plan(), ["RETR": "150 here\r\n226 done"])
        play.handle(.opened(isIPv6: false, port: 21))
        play.reply("greeting")
        play.handle(.controlEnded)
        play.handle(.dataEnded(100))
        #expect(play.log.last == "[end]")
    }

    @Test func `an upload is stored or resumed, and its size is checked`() {
        #expect(
            run(Self.plan(.store(resumes: false))).suffix(5) == [
                "[connect 4000]", "STOR f", "[begin -1 0]", "SIZE f", "[end]",
            ])
        #expect(run(Self.plan(.store(resumes: false)), count: 99).last == "[lost]")
        #expect(run(Self.plan(.store(resumes: false)), ["SIZE": "550 no"]).last == "[end]")
        var resumed = Self.plan(.store(resumes: true))
        resumed.length = 100
        #expect(
            run(resumed, ["SIZE": "213 30"], count: 70).suffix(6) == [
                "[connect 4000]", "REST 30", "STOR f", "[begin -1 30]", "SIZE f", "[lost]",
            ])
        #expect(
            run(resumed, ["SIZE": "213 30", "REST": "502 no"], count: 0).suffix(5) == [
                "REST 30", "APPE f", "[begin -1 30]", "SIZE f", "[end]",
            ])
        #expect(run(resumed, ["SIZE": "213 101"], count: 101).suffix(4) == ["STOR f", "[begin -1 0]", "SIZE f", "[end]"])
        #expect(run(resumed, ["SIZE": "550 no"]).suffix(4) == ["STOR f", "[begin -1 0]", "SIZE f", "[end]"])
    }

    @Test(arguments: [
        ("CWD", "550 no", "[noSuchFile]"), ("RETR", "550 no", "[noSuchFile]"), ("RETR", "450 busy", "[lost]"),
        ("TYPE", "500 no", "[refused]"),
        ("EPSV", "421 bye", "[lost]"), ("greeting", "421 full", "[noConnection]"),
        ("greeting", "554 no", "[noConnection]"),
        ("USER", "332 account", "[refused]"), ("PASS", "230 in", "[end]"), ("USER", "230 in", "[end]"),
        ("USER", "200 in", "[end]"),
        ("EPSV", "150 wait", "[refused]"),
        ("greeting", "120 wait\r\n220 hi", "[end]"),
    ])
    func `each refusal has its own error`(_ command: String, answer: String, outcome: String) {
        #expect(run(Self.plan(directories: ["d"]), [command: answer]).last == outcome)
    }

    @Test func `a refused login is requested again`() {
        var machine = FTPMachine(Self.plan())
        _ = machine.handle(.opened(isIPv6: false, port: 21))
        #expect(machine.handle(.replied(FTPReply(code: 220, text: ""))) == [.findLogin(refusal: nil)])
        _ = machine.handle(.login(user: [97], password: []))
        #expect(machine.handle(.replied(FTPReply(code: 530, text: "no"))) == [.findLogin(refusal: "530 no")])
        guard case .send(let command)? = machine.handle(.login(user: [98], password: [])).first else {
            return #expect(Bool(false))
        }
        #expect(command.line == Self.bytes("USER b\r\n"))
    }

    // MARK: Random events

    /// In a million random events, each load ends at most once, and nothing follows its end.
    ///
    /// No login or file name is sent before required TLS, and data begins only after the login.
    @Test func `a load ends at most once in any sequence of events`() {
        var numbers = SeededNumbers(seed: 20_26)
        var seen: Set<String> = []
        var events = 0
        while events < 1_000_000 {
            let security = [FTPPlan.Security.none, .implicit, .explicit].randomElement(using: &numbers) ?? .none
            let transfer =
                [
                    FTPPlan.Transfer.retrieve, .list, .listNames, .describe, .store(resumes: true),
                    .store(resumes: false),
                ]
                .randomElement(using: &numbers) ?? .list
            var plan = Self.plan(transfer, security: security, directories: ["d"])
            if Bool.random(using: &numbers) {
                (plan.offset, plan.earlier) = (4, FTPPlan.Version(size: 9, modified: "20200203040506"))
            }
            var machine = FTPMachine(plan)
            var (isOver, isSecured, isIn, hasBegun) = (false, false, false, false)
            var last: FTPMachine.Action?
            for _ in 0..<60 where !isOver || Bool.random(using: &numbers) {
                let event = last.flatMap { Self.event(after: $0, &numbers) } ?? Self.event(&numbers)
                events += 1
                let actions = machine.handle(event)
                last = actions.last ?? last
                if isOver { #expect(actions.isEmpty, "an action after the end") }
                for action in actions {
                    #expect(!isOver, "two ends")
                    switch action {
                    case .send(let command):
                        seen.insert(command.verb)
                        let isPlain = ["USER", "PASS", "RETR", "STOR", "SIZE", "CWD"].contains(command.verb)
                        if security != .none, isPlain { #expect(isSecured, "\(command.verb) in clear") }
                    case .secure: isSecured = event == .secured || isSecured
                    case .loggedIn: isIn = true
                    case .begin:
                        #expect(isIn && !hasBegun)
                        hasBegun = true
                    case .end:
                        seen.insert("end")
                        #expect(hasBegun)
                        isOver = true
                    case .reconnect: isOver = true
                    case .fail(let failure):
                        seen.insert("\(failure.kind)")
                        isOver = true
                    case .expectEnd: seen.insert("expect")
                    case .findLogin, .connect, .secureData: break
                    }
                }
                if event == .secured { isSecured = true }
                #expect(machine.isOver == isOver)
            }
        }
        for name in [
            "AUTH", "USER", "PASS", "PBSZ", "PROT", "CWD", "TYPE", "SIZE", "MDTM", "EPSV", "PASV", "REST", "RETR", "LIST", "NLST",
            "STOR", "APPE", "end",
            "expect", "noSuchFile", "mayNot", "tooLarge", "notSecure", "noConnection", "lost", "refused",
        ] {
            #expect(seen.contains(name), "\(name) never happened")
        }
    }

    /// The usual reaction of a correct server to an action.
    private static func event(after action: FTPMachine.Action, _ numbers: inout SeededNumbers) -> FTPMachine.Event? {
        guard Int.random(in: 0..<12, using: &numbers) > 0 else { return nil }
        switch action {
        case .secure: return .secured
        case .findLogin: return .login(user: [97], password: [98])
        case .connect:
            return [.connected, .replied(FTPReply(code: 213, text: "20200203040506")), .connectionRefused].randomElement(
                using: &numbers)
        case .secureData: return .dataSecured
        case .begin:
            return [.dataEnded(9), .dataEnded(5), .replied(FTPReply(code: 226, text: "")), .dataFailed].randomElement(
                using: &numbers)
        case .send(let command):
            let replies = [
                "AUTH": (234, ""), "USER": (331, ""), "PASS": (230, ""), "PBSZ": (200, ""), "PROT": (200, ""),
                "PWD": (257, "\"/h\""), "CWD": (250, ""),
                "TYPE": (200, ""),
                "SIZE": (213, "9"), "MDTM": (213, "20200203040506"), "EPSV": (229, "(|||7|)"), "PASV": (227, "1,2,3,4,5,6"),
                "REST": (350, ""),
            ]
            let (code, text) = replies[command.verb] ?? (150, "")
            return .replied(FTPReply(code: code, text: text))
        case .expectEnd: return [.dataEnded(3), .waitTimedOut, .dataFailed].randomElement(using: &numbers)
        case .loggedIn, .reconnect, .end, .fail: return nil
        }
    }

    private static func event(_ numbers: inout SeededNumbers) -> FTPMachine.Event {
        let codes = [
            (150, ""), (200, ""), (213, "9"), (213, "20200203040506"), (220, ""), (226, ""), (227, "1,2,3,4,5,6"),
            (229, "(|||7|)"), (230, ""), (234, ""), (250, ""),
            (331, ""), (350, ""), (421, ""), (425, ""), (452, ""), (502, ""), (522, ""), (530, ""), (550, ""), (553, ""),
        ]
        switch Int.random(in: 0..<100, using: &numbers) {
        case 0: return .controlEnded
        case 1: return .dataFailed
        case 2: return .waitTimedOut
        case 3...8: return .opened(isIPv6: Bool.random(using: &numbers), port: 21)
        case 9...20: return .secured
        case 21...32: return .login(user: [97], password: [98])
        case 33...42: return .connected
        case 43...52: return .dataSecured
        case 53...58: return .dataEnded(Int64.random(in: 0...9, using: &numbers))
        default:
            let (code, text) = codes.randomElement(using: &numbers) ?? (500, "")
            return .replied(FTPReply(code: code, text: text))
        }
    }
}
