// SPDX-License-Identifier: Apache-2.0

import HistoryModel
import Testing

/// Each rule accepts an outcome that obeys it, and detects one that breaks it.
struct HistoryRulesTests {
    private static let first = 1
    private static let own = 2

    /// A finished load, and an earlier load of another session or of the same one.
    private struct Outcome {
        var before = LoadFacts(
            number: HistoryRulesTests.first, step: LoadStep(session: 1, origin: .secure, page: .open), kind: SessionKind(),
            session: 1)
        var load = LoadFacts(
            number: HistoryRulesTests.own, step: LoadStep(session: 2, origin: .secure, page: .open), kind: SessionKind(),
            session: 2)
        var head = PageHead(load: HistoryRulesTests.first, server: "secure", identity: .valid, page: .open, version: 1, lines: 3)
        var report = WorkerReport(.end, load: HistoryRulesTests.own)
        var accepted: Set<String> = []
        var requests: [SeenRequest] = []
        /// The text of the body instead of the text that belongs to the head.
        var text: String?

        init() { report.status = 200 }

        var page: Page {
            get { load.step.page }
            set { (load.step.page, before.step.page, head.page) = (newValue, newValue, newValue) }
        }

        var rules: [Fault.Rule] {
            var world = HistoryWorld()
            world.loads = [before.number: before, load.number: load]
            world.requests = Dictionary(grouping: requests, by: \.load)
            world.accepted = [load.session: [head.server: accepted]]
            var report = report
            if report.body == nil, report.error == nil { report.body = text ?? PageText.text(head) }
            return HistoryRules.faults(of: load, report, in: world).map(\.rule)
        }
    }

    private func rules(_ change: (inout Outcome) -> Void) -> [Fault.Rule] {
        var outcome = Outcome()
        change(&outcome)
        return outcome.rules
    }

    @Test func `responses that the system's roots vouched for may be used by other sessions`() {
        #expect(rules { _ in } == [])
    }

    @Test func `a response that another session trusted is not used`() {
        #expect(rules { $0.head.identity = .unknown } == [.trust])
        #expect(
            rules { ($0.before.kind.trust, $0.load.kind.trust, $0.head.identity) = (.delegate, .delegate, .unknown) } == [.trust])
        #expect(rules { $0.before.kind.trust = .ownRoots } == [.trust])
        #expect(rules { ($0.before.kind.isSubstituted, $0.head.server) = (true, "substitute-secure") } == [.trust])
        #expect(rules { $0.load.kind.trust = .ownRoots } == [.trust])
        #expect(
            rules {
                ($0.before.kind.isSubstituted, $0.load.kind.isSubstituted, $0.head.server) = (true, true, "substitute-secure")
            } == [.trust])
        #expect(rules { ($0.before.kind.stores, $0.load.session) = (.ephemeral, 2) } == [.trust])
    }

    @Test func `a response that a session trusted is used by that session, unless only the task trusted it`() {
        let own: (inout Outcome) -> Void = {
            ($0.before.kind.trust, $0.load.kind.trust, $0.head.identity, $0.load.session) = (.delegate, .delegate, .unknown, 1)
        }
        #expect(rules(own) == [])
        #expect(
            rules {
                own(&$0)
                ($0.before.step.hasOwnTrust, $0.load.step.hasOwnTrust) = (true, true)
            } == [.trust])
    }

    @Test func `a response for a credential is used only with the same credential`() {
        #expect(rules { $0.head.credential = "basic:ali" } == [.credential])
        #expect(
            rules { ($0.head.credential, $0.load.step.principal, $0.load.step.proof) = ("basic:ali", .bob, .basicField) }
                == [.credential])
        #expect(rules { ($0.head.credential, $0.load.step.principal, $0.load.step.proof) = ("basic:ali", .ali, .userInfo) } == [])
        #expect(rules { ($0.head.credential, $0.accepted) = ("basic:ali", ["basic:ali"]) } == [])
        #expect(
            rules {
                $0.page = .shared
                $0.head.credential = "basic:ali"
            } == [])
    }

    @Test func `a credential of the configuration or of the request is sent`() {
        #expect(rules { ($0.head.load, $0.load.kind.principal) = (Self.own, .ali) } == [.notSent])
        #expect(rules { ($0.head.load, $0.load.kind.principal, $0.head.credential) = (Self.own, .ali, "basic:ali") } == [])
        #expect(
            rules {
                $0.page = .guarded
                ($0.report.status, $0.load.step.principal, $0.load.step.proof) = (401, .ali, .challenge)
            } == [.answer])
    }

    @Test func `a response varies by the sent fields`() {
        let cookie: (inout Outcome) -> Void = {
            $0.page = .varyCookie
            $0.head.cookie = "login-ali-1"
        }
        #expect(rules(cookie) == [.vary])
        #expect(
            rules {
                cookie(&$0)
                ($0.report.cookiesBefore, $0.report.cookies) = (["sid=login-ali-1"], ["sid=login-ali-1"])
            } == [])
        #expect(
            rules {
                $0.page = .varyField
                $0.load.step.field = "blue"
            } == [.vary])
        #expect(
            rules {
                $0.page = .varyAuthorization
                ($0.load.step.principal, $0.load.step.proof) = (.bob, .bearerField)
            } == [.vary])
    }

    @Test func `a stored response is used only as allowed`() {
        #expect(rules { $0.page = .noStore } == [.freshness])
        #expect(rules { $0.page = .check } == [.freshness])
        #expect(rules { $0.load.step.policy = .reload } == [.freshness])
        #expect(rules { $0.before.kind.stores = .withoutCache } == [.freshness])
        #expect(rules { $0.before.step.way = .download } == [.freshness])
        #expect(
            rules {
                $0.page = .check
                $0.load.versions = 2...2
                $0.requests = [SeenRequest(load: Self.own, server: "secure", page: .check)]
            } == [.freshness])
        #expect(
            rules {
                $0.load.step.policy = .dontLoad
                $0.requests = [SeenRequest(load: Self.own, server: "secure", page: .open)]
            } == [.freshness])
    }

    @Test func `a body is one that a server sent`() {
        let other = PageHead(load: Self.first, server: "secure", identity: .valid, page: .open, version: 2, lines: 3)
        #expect(
            rules { $0.text = String(PageText.text($0.head).dropLast(30)) + String(PageText.text(other).suffix(30)) } == [.whole])
        #expect(rules { $0.text = String(PageText.text($0.head).dropLast()) } == [.whole])
        #expect(rules { $0.text = "\(PageText.byProtocol) 1" } == [.protocolClass])
    }

    @Test func `a resumed body has no part that the load would refuse`() {
        let joined: (inout Outcome) -> Void = {
            $0.page = .long
            let head = PageHead(load: 0, server: "secure", identity: .unknown, page: .long, version: 1, lines: 50)
            var other = head
            other.identity = .valid
            $0.text = String(PageText.text(head).prefix(1000)) + String(PageText.text(other).dropFirst(1000))
        }
        #expect(rules(joined) == [.trust])
        #expect(
            rules {
                joined(&$0)
                $0.load.kind.trust = .delegate
            } == [])
    }

    @Test func `a load fails only for an expected reason`() {
        #expect(rules { $0.report.error = -1005 } == [.answer])
        #expect(rules { $0.report.status = 304 } == [.answer])
        #expect(rules { ($0.report.error, $0.load.identities) = (-1202, [.unknown]) } == [])
        #expect(rules { ($0.report.error, $0.load.isDisturbed) = (-999, true) } == [])
    }

    @Test func `the end is reported once, and last`() {
        let calls: ([String]) -> [Fault.Rule] = { calls in
            rules { ($0.load.step.way, $0.report.calls) = (.delegate, calls) }
        }
        #expect(calls(["didReceiveResponse", "didReceiveData", "didComplete"]) == [])
        #expect(calls(["didReceiveResponse", "didComplete", "didReceiveData"]) == [.end])
        #expect(calls(["didReceiveResponse", "didComplete", "didComplete"]) == [.end])
        #expect(calls(["didReceiveData", "didComplete"]) == [.end])
    }

    @Test func `a cookie is stored before its response is delivered`() {
        let login: (inout Outcome) -> Void = {
            $0.page = .varyCookie
            ($0.head.load, $0.load.step.login) = (Self.own, .ali)
            $0.requests = [SeenRequest(load: Self.own, server: "secure", page: .varyCookie)]
        }
        #expect(rules(login) == [.cookie])
        #expect(
            rules {
                login(&$0)
                $0.report.cookies = ["sid=login-ali-2"]
            } == [])
        #expect(
            rules {
                login(&$0)
                $0.report.cookies = ["sid=login-ali-2"]
                $0.requests[0].cookie = "sid=login-bob-1"
                $0.head.cookie = "login-bob-1"
            } == [.cookie])
    }

    @Test func `a stored redirect is used only with the same trust and credential`() {
        let redirect: (inout Outcome) -> Void = {
            ($0.load.step.page, $0.before.step.page) = (.away, .away)
            ($0.load.step.origin, $0.before.step.origin) = (.secure, .secure)
            ($0.head.server, $0.head.identity, $0.head.page) = ("clear", nil, .landing)
            ($0.head.load, $0.head.via) = (Self.own, Self.first)
            $0.requests = [SeenRequest(load: Self.first, server: "secure", page: .away)]
            $0.requests[0].identity = .valid
        }
        #expect(rules(redirect) == [])
        #expect(
            rules {
                redirect(&$0)
                $0.requests[0].identity = .unknown
            } == [.trust])
        #expect(
            rules {
                redirect(&$0)
                $0.requests[0].credential = "basic:ali"
            } == [.credential])
    }

    @Test func `a handshake neither uses the cache nor is stored`() {
        #expect(rules { ($0.load.step.way, $0.report.status) = (.webSocket, 101) }.contains(.freshness))
        #expect(rules { $0.before.step.way = .webSocket } == [.freshness])
        #expect(rules { $0.before.step.way = .becomesStream } == [.freshness])
        let redirect: (inout Outcome) -> Void = {
            ($0.load.step.page, $0.before.step.page) = (.away, .away)
            ($0.head.server, $0.head.identity, $0.head.page) = ("clear", nil, .landing)
            ($0.head.load, $0.head.via) = (Self.own, Self.first)
            $0.before.step.way = .webSocket
        }
        #expect(rules(redirect) == [.freshness])
        var request = SeenRequest(load: Self.own, server: "secure", page: .open)
        request.isConditional = true
        #expect(faults(request) { $0.step.way = .webSocket } == [.freshness])
        #expect(faults(request) == [])
    }

    @Test func `a handshake ends in another protocol, or fails`() {
        let socket: (inout Outcome) -> Void = {
            ($0.load.step.way, $0.load.kind.hasDelegate) = (.webSocket, false)
            ($0.head.load, $0.report.status) = (Self.own, 101)
        }
        #expect(rules(socket) == [])
        #expect(
            rules {
                socket(&$0)
                $0.report.status = 200
            } == [.answer])
        let refused: (inout Outcome) -> Void = {
            socket(&$0)
            $0.page = .guarded
            ($0.report.status, $0.report.error) = (401, -1013)
        }
        #expect(rules(refused) == [])
        #expect(
            rules {
                refused(&$0)
                ($0.load.step.principal, $0.load.step.proof) = (.ali, .userInfo)
            } == [.answer])
        #expect(
            rules {
                refused(&$0)
                $0.page = .open
            } == [.answer])
    }

    @Test func `a WebSocket opens first, and its end is reported once, and last`() {
        let calls: ([String]) -> [Fault.Rule] = { calls in
            rules {
                ($0.load.step.way, $0.head.load) = (.webSocket, Self.own)
                ($0.report.status, $0.report.calls) = (101, calls)
            }
        }
        #expect(calls(["didOpen", "didClose", "didComplete"]) == [])
        #expect(calls(["didClose", "didOpen", "didComplete"]) == [.end])
        #expect(calls(["didOpen", "didComplete", "didClose"]) == [.end])
        #expect(calls(["didOpen", "didClose", "didComplete", "didComplete"]) == [.end])
        #expect(calls(["didComplete"]) == [.end])
    }

    @Test func `a task becomes a stream only at its response`() {
        let calls: ([String]) -> [Fault.Rule] = { calls in
            rules {
                ($0.load.step.way, $0.head.load) = (.becomesStream, Self.own)
                ($0.report.status, $0.report.calls) = (101, calls)
            }
        }
        #expect(calls(["didReceiveResponse", "didBecome", "didComplete"]) == [])
        #expect(calls(["didBecome", "didReceiveResponse", "didComplete"]) == [.end])
        #expect(calls(["didReceiveResponse", "didBecome", "didComplete", "didComplete"]) == [.end])
    }

    @Test func `messages arrive in order and completely`() {
        let messages: ([String]) -> [Fault.Rule] = { received in
            rules {
                ($0.load.step.way, $0.load.kind.hasDelegate) = (.webSocket, false)
                ($0.head.load, $0.report.status) = (Self.own, 101)
                ($0.load.sent, $0.load.received) = (["one", "two"], received)
            }
        }
        #expect(messages(["one", "two"]) == [])
        #expect(messages(["one"]) == [.messages])
        #expect(messages(["two", "one"]) == [.messages])
        #expect(messages(["one", "two", "two"]) == [.messages])
    }

    // MARK: Streams

    private func stream(_ change: (inout Outcome) -> Void = { _ in }) -> [Fault.Rule] {
        rules {
            ($0.load.step.way, $0.load.kind.hasDelegate, $0.head.load) = (.stream, false, Self.own)
            $0.requests = [SeenRequest(load: Self.own, server: "secure", page: .open)]
            change(&$0)
        }
    }

    @Test func `over a stream the session adds nothing to the app's request and stores nothing of the response`() {
        #expect(stream() == [])
        #expect(stream { ($0.load.kind.principal, $0.head.credential) = (.ali, "basic:ali") } == [.credential])
        #expect(stream { $0.requests[0].cookie = "sid=login-ali-1" } == [.cookie])
        #expect(stream { ($0.load.step.login, $0.report.cookies) = (.ali, ["sid=login-ali-2"]) } == [.cookie])
        #expect(stream { $0.head.load = Self.first } == [.freshness])
        #expect(
            stream {
                $0.page = .guarded
                ($0.report.status, $0.load.kind.principal) = (401, .ali)
            } == [])
        var request = SeenRequest(load: Self.own, server: "secure", page: .open)
        request.credential = "basic:ali"
        #expect(faults(request) { ($0.step.way, $0.kind.principal) = (.stream, .ali) } == [.leak])
        #expect(faults(request) { $0.kind.principal = .ali } == [])
    }

    @Test func `a failed load delivered nothing of a server that it refuses`() {
        let refused: (inout Outcome) -> Void = {
            ($0.head.load, $0.head.identity, $0.load.identities) = (Self.own, .unknown, [.unknown])
            $0.report.error = -1202
            $0.report.body = String(PageText.text($0.head).dropLast(20))
        }
        #expect(stream(refused) == [.trust])
        #expect(rules(refused) == [.trust])
        #expect(
            stream {
                refused(&$0)
                $0.load.kind.trust = .delegate
            } == [.answer])
    }

    // MARK: FTP

    private func file(_ change: (inout Outcome) -> Void = { _ in }) -> [Fault.Rule] {
        rules {
            ($0.load.step.service, $0.before.step.service) = (.ftp, .ftp)
            ($0.head.load, $0.head.server, $0.report.status) = (Self.own, "ftps", nil)
            change(&$0)
        }
    }

    @Test func `an FTP file is complete, belongs to its load, and is not stored`() {
        #expect(file() == [])
        #expect(file { $0.text = String(PageText.text($0.head).dropLast(40)) } == [.whole])
        #expect(file { $0.head.load = Self.first } == [.freshness])
        #expect(file { $0.head.identity = .unknown } == [.trust])
        #expect(file { $0.head.server = "ftp" } == [.trust])
        // An HTTP load must not get the file of an FTP server either.
        #expect(rules { $0.head.server = "ftps" } == [.trust])
    }

    @Test func `a load uses only its own FTP login`() {
        #expect(file { ($0.load.step.principal, $0.load.step.proof) = (.ali, .userInfo) } == [.notSent])
        #expect(
            file { ($0.load.step.principal, $0.load.step.proof, $0.head.credential) = (.ali, .userInfo, "basic:ali") } == [])
        #expect(file { $0.head.credential = "basic:ali" } == [.credential])
        #expect(file { $0.report.error = -1013 } == [.answer])
        let guarded: (inout Outcome) -> Void = {
            $0.page = .guarded
            $0.report.error = -1013
        }
        #expect(file(guarded) == [])
        #expect(
            file {
                guarded(&$0)
                ($0.load.step.principal, $0.load.step.proof) = (.ali, .challenge)
            } == [.answer])
        // Credentials that the session sends over HTTP are not used for FTP.
        #expect(
            file {
                guarded(&$0)
                $0.load.kind.principal = .ali
            } == [])
        var login = SeenRequest(load: Self.own, server: "ftps", page: .open, method: "FTP")
        login.identity = .valid
        #expect(faults(login) { $0.step.service = .ftp } == [])
        login.credential = "basic:ali"
        #expect(faults(login) { ($0.step.service, $0.kind.principal) = (.ftp, .ali) } == [.leak])
        login.server = "ftp"
        #expect(faults(login) { ($0.step.service, $0.step.principal, $0.step.proof) = (.ftp, .ali, .userInfo) } == [.leak])
    }

    @Test func `no login is sent in clear if TLS is required`() {
        let login = SeenRequest(load: Self.own, server: "ftp-secure", page: .open, method: "FTP")
        let explicit: (inout LoadFacts) -> Void = { ($0.step.service, $0.step.startsInClear) = (.ftp, true) }
        #expect(faults(login, explicit) == [])
        #expect(
            faults(login) {
                explicit(&$0)
                $0.kind.requiresSecureFTP = true
            } == [.trust])
        #expect(
            file {
                ($0.load.kind.requiresSecureFTP, $0.load.step.origin) = (true, .clear)
                $0.report.error = -1200
            } == [])
    }

    @Test func `an uploaded file is stored as it was sent`() {
        let stored: (String) -> [Fault.Rule] = { received in
            file {
                $0.page = .send
                ($0.load.sent, $0.load.received, $0.report.body) = (["posted"], [received], "")
            }
        }
        #expect(stored("posted") == [])
        #expect(stored("pos") == [.messages])
    }

    // MARK: Requests

    private func faults(_ request: SeenRequest, _ change: (inout LoadFacts) -> Void = { _ in }) -> [Fault.Rule] {
        var world = HistoryWorld()
        var load = Outcome().load
        change(&load)
        world.loads[load.number] = load
        return world.note(request).map(\.rule)
    }

    @Test func `a credential is sent only to the origin of its load`() {
        var request = SeenRequest(load: Self.own, server: "secure", page: .open)
        request.credential = "basic:ali"
        #expect(faults(request) { ($0.step.principal, $0.step.proof) = (.ali, .basicField) } == [])
        #expect(faults(request) == [.leak])
        request.server = "clear"
        #expect(faults(request) { ($0.step.principal, $0.step.proof, $0.step.page) = (.ali, .basicField, .away) } == [.leak])
        #expect(faults(request) { ($0.step.principal, $0.step.proof) = (.ali, .basicField) } == [.leak])
    }

    @Test func `nothing is sent to an untrusted server`() {
        var request = SeenRequest(load: Self.own, server: "secure", page: .open)
        request.identity = .expired
        #expect(faults(request) == [.trust])
        #expect(faults(request) { $0.kind.trust = .delegate } == [])
    }

    @Test func `a request that is not idempotent is received once`() {
        let post = SeenRequest(load: Self.own, server: "secure", page: .send, method: "POST")
        var world = HistoryWorld()
        world.loads[Self.own] = Outcome().load
        #expect(world.note(post) == [])
        #expect(world.note(post).map(\.rule) == [.twice])
    }
}
