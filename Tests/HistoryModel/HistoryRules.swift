// SPDX-License-Identifier: Apache-2.0

/// The rules for the outcome of each load.
///
/// They follow from what the library promises, and do not depend on how it works.
package struct HistoryRules {
    private let world: HistoryWorld
    private let load: LoadFacts
    private let report: WorkerReport

    private init(_ world: HistoryWorld, _ load: LoadFacts, _ report: WorkerReport) {
        self.world = world
        self.load = load
        self.report = report
    }

    /// The rules that a finished load breaks.
    package static func faults(of load: LoadFacts, _ report: WorkerReport, in world: HistoryWorld) -> [Fault] {
        let rules = HistoryRules(world, load, report)
        return rules.order() + rules.answer() + rules.body() + rules.rest() + rules.cookies() + rules.messages()
    }

    private func fault(_ rule: Fault.Rule, _ text: String) -> Fault { Fault(rule, "load \(load.number): \(text)") }

    private var own: [SeenRequest] { world.requests[load.number] ?? [] }

    // MARK: End of the load

    /// The end is reported once, and last.
    private func order() -> [Fault] {
        if load.step.way == .webSocket { return orderOfSocket() }
        if load.step.way == .stream, load.kind.hasDelegate {
            let isRight = report.calls.count { $0 == "didComplete" } == 1 && report.calls.last == "didComplete"
            return isRight ? [] : [fault(.end, "calls \(report.calls)")]
        }
        guard load.step.way == .delegate || load.step.way == .becomesStream else { return [] }
        let ends = report.calls.count { $0 == "didComplete" }
        guard ends == 1, report.calls.last == "didComplete" else { return [fault(.end, "calls \(report.calls)")] }
        let responses = report.calls.count { $0 == "didReceiveResponse" }
        if responses > 1 { return [fault(.end, "\(responses) responses")] }
        if let data = report.calls.firstIndex(of: "didReceiveData"),
            report.calls.firstIndex(of: "didReceiveResponse").map({ $0 > data }) ?? true
        {
            return [fault(.end, "data before the response: \(report.calls)")]
        }
        if let change = report.calls.firstIndex(of: "didBecome"),
            change != report.calls.lastIndex(of: "didReceiveResponse").map({ $0 + 1 })
        {
            return [fault(.end, "becomes a stream otherwise than at the response: \(report.calls)")]
        }
        return []
    }

    /// A WebSocket of a session with a delegate opens before all other delegate calls, and closes only after it has opened.
    private func orderOfSocket() -> [Fault] {
        guard load.kind.hasDelegate else { return [] }
        let (calls, opens) = (report.calls, report.error == nil ? 1...1 : 0...1)
        let places = ["didOpen", "didClose"].map { name in calls.indices.filter { calls[$0] == name } }
        let isRight =
            calls.count { $0 == "didComplete" } == 1 && calls.last == "didComplete" && opens.contains(places[0].count)
            && places[1].count <= places[0].count && places[0].allSatisfy { $0 == 0 }
        return isRight ? [] : [fault(.end, "calls \(calls)")]
    }

    // MARK: Success

    /// A load fails only for an expected reason.
    private func answer() -> [Fault] {
        if load.step.policy == .dontLoad {
            return own.isEmpty ? [] : [fault(.freshness, "asked the server, though it must not")]
        }
        if load.isDisturbed || load.isByProtocol { return [] }
        if let error = report.error {
            let origins = load.step.page == .away ? Origin.allCases : [load.step.origin]
            let isRefused = origins.contains(.secure) && !load.identities.allSatisfy(load.accepts)
            // RFC 9110, section 9.2.2: requests that are not idempotent are not retried.
            if isRefused || isForbidden || load.mayMeetClosed && error == -1005 { return [] }
            // A rejected FTP login is an error, where HTTP has a 401.
            if load.step.service == .ftp, error == -1013, load.step.page.isGuarded || load.step.principal == .mallory {
                return answerToStranger()
            }
            // A handshake with any other response fails.
            if report.status == 401, load.step.page.isGuarded { return answerToStranger() }
            return [fault(.answer, "failed with \(error) (\(report.message ?? ""))")]
        }
        let status = report.status ?? 0
        if load.step.page.isGuarded, status == 401 { return answerToStranger() }
        return isWhole || lacksAnswer ? [] : [fault(.answer, "status \(status)")]
    }

    /// Whether the session requires TLS from a server that does not offer it.
    private var isForbidden: Bool {
        load.step.service == .ftp && load.kind.requiresSecureFTP && load.step.origin == .clear
    }

    /// Only a load without a valid credential may get a 401.
    private func answerToStranger() -> [Fault] {
        load.isKnown ? [fault(load.sendsAtOnce ? .notSent : .answer, "401, though it has \(load.credential ?? "nothing")")] : []
    }

    // MARK: The body

    /// Whether the load has succeeded with a complete body; a resumed body has the status 200 or 206.
    private var isWhole: Bool {
        if load.step.service == .ftp { return report.error == nil }
        if load.switchesProtocols { return report.status == 101 }
        return report.status == 200 || report.status == 206 && load.step.page == .long
    }

    private var lacksAnswer: Bool { load.mayLackAnswer && report.status == 204 && report.body?.isEmpty != false }

    /// Whether the load uploads a file by FTP; the response then has no body.
    private var stores: Bool { load.step.service == .ftp && load.step.page == .send }

    private func body() -> [Fault] {
        guard report.error == nil, isWhole, !stores, let text = report.body else { return [] }
        if text.hasPrefix(PageText.byProtocol) {
            return load.isByProtocol ? [] : [fault(.protocolClass, "a response that a protocol class made")]
        }
        guard let head = PageText.head(of: text) else {
            if load.step.page == .long, let parts = PageText.identities(joinedIn: text) {
                return parts.allSatisfy(load.accepts)
                    ? [] : [fault(.trust, "parts of servers with the identities \(parts), joined")]
            }
            return [fault(.whole, "\(text.utf8.count) bytes that no server sent, beginning with \(text.prefix(300))")]
        }
        let page = load.step.page == .away ? .landing : load.step.page
        let origin = load.step.page == .away ? load.step.origin.other : load.step.origin
        guard head.page == page else { return [fault(.whole, "\(head.page) in place of \(page)")] }
        // If the load must not get the body at all, its credential does not matter.
        let trust = self.trust(head, at: origin)
        guard trust.isEmpty else { return trust }
        return credential(head, at: origin) + vary(head) + freshness(head) + redirect(head)
    }

    /// A failed load must not have delivered bytes of a server that it refuses.
    private func rest() -> [Fault] {
        guard report.error != nil, let text = report.body, let head = PageText.beginning(of: text) else { return [] }
        return load.accepts(head.identity)
            ? []
            : [
                fault(
                    .trust,
                    "failed, and delivered bytes of the \(head.server) server with the \(head.identity.map(\.rawValue) ?? "") identity"
                )
            ]
    }

    /// Only loads that accept a response's connection may use the response; other sessions may use it only if the system's roots
    /// vouch for the server.
    private func trust(_ head: PageHead, at origin: Origin) -> [Fault] {
        let what = "\(head.server) \(head.identity.map { "with the \($0) identity " } ?? "")obtained by load \(head.load)"
        guard load.accepts(head.identity) else { return [fault(.trust, "what it would refuse: \(what)")] }
        guard head.server == load.server(at: origin) else { return [fault(.trust, "another server's: \(what)")] }
        guard head.load != load.number, head.load != 0 else { return [] }
        guard let first = world.loads[head.load] else { return [fault(.machine, "an unknown load: \(what)")] }
        return reach(from: first, head.identity, at: origin, what)
    }

    private func reach(from first: LoadFacts, _ identity: Identity?, at origin: Origin, _ what: String) -> [Fault] {
        if load.kind.stores == .withoutCache || first.kind.stores == .withoutCache {
            return [fault(.freshness, "from a cache that one of both has not: \(what)")]
        }
        let isSame = first.session == load.session
        if first.kind.stores == .ephemeral || load.kind.stores == .ephemeral, !isSame {
            return [fault(.trust, "between the stores of two sessions: \(what)")]
        }
        if first.obtainsForAll(identity) {
            return load.readsWhatIsForAll(over: origin)
                ? [] : [fault(.trust, "what is for sessions of the system's trust: \(what)")]
        }
        // What a task's own delegate trusted is not for other tasks, unless the session's roots vouch for the server.
        let isSessions = !first.step.hasOwnTrust || first.isVouchedFor(identity)
        return isSame && isSessions ? [] : [fault(.trust, "what is for another session's trust: \(what)")]
    }

    /// A response for a credential may be used only by loads with the same credential.
    private func credential(_ head: PageHead, at origin: Origin) -> [Fault] {
        let accepted = world.known(to: load, at: head.server)
        let isFirst = load.step.page != .away
        if let credential = head.credential {
            if isFirst, credential == load.credential || credential == load.sessionCredential && !load.step.page.isGuarded {
                return []
            }
            // If the server rejects the request's own field, the session's credential may answer the challenge.
            let hasSent = head.load == load.number || own.contains { $0.credential == credential && $0.server == head.server }
            if accepted.contains(credential), hasSent || !(isFirst && load.sendsAtOnce) { return [] }
            if head.page.isPublic, head.load != load.number { return [] }
            return [
                fault(
                    .credential, "has \(load.credential ?? "none"), and sees what load \(head.load) obtained with \(credential)")
            ]
        }
        guard isFirst, head.load == load.number, load.sendsAtOnce, let credential = load.credential else { return [] }
        return [fault(.notSent, "\(credential) did not go with the request")]
    }

    /// A stored response may be used only for requests in which the fields named by `Vary` have the same values.
    private func vary(_ head: PageHead) -> [Fault] {
        switch head.page {
        case .varyField where head.field != load.step.field:
            return [fault(.vary, "for the field \(head.field ?? "nil"), not \(load.step.field ?? "nil")")]
        case .varyCookie:
            // Another process may change the cookie store between the report and the request.
            let sent = own.first.map { [$0.cookie] } ?? [Self.cookie(report.cookiesBefore), Self.cookie(report.cookies)]
            guard load.isAlone, !sent.contains(head.cookie.map { "sid=" + $0 }) else { return [] }
            let cookies = sent.map { $0 ?? "none" }
            return [fault(.vary, "sends \(cookies), and sees what load \(head.load) obtained with \(head.cookie ?? "none")")]
        case .varyAuthorization where head.load != load.number:
            let accepted = world.accepted[load.session]?[head.server] ?? []
            let sent: Set<String?> = load.sendsAtOnce ? [load.credential] : Set(accepted.map { $0 }).union([nil])
            guard !sent.contains(head.credential) else { return [] }
            return [fault(.vary, "sends \(sent), and sees what load \(head.load) obtained with \(head.credential ?? "nil")")]
        default: return []
        }
    }

    /// A stored response is used as its fields and the request allow.
    private func freshness(_ head: PageHead) -> [Fault] {
        if head.version > load.versions.upperBound { return [fault(.machine, "version \(head.version) is not there yet")] }
        if head.load == load.number || head.load == 0 && !own.isEmpty {
            return head.version >= load.versions.lowerBound ? [] : [fault(.freshness, "version \(head.version) from the server")]
        }
        let what = "version \(head.version) of \(load.versions), obtained by load \(head.load)"
        if !head.page.isStored { return [fault(.freshness, "no-store: \(what)")] }
        if [load, world.loads[head.load] ?? load].contains(where: \.hasNoCache) {
            return [fault(.freshness, "downloads, streams and other protocols have no part in the cache: \(what)")]
        }
        let mayBeOld = load.step.policy == .elseLoad || load.step.policy == .dontLoad
        guard !mayBeOld, head.page.isCheckedAlways || load.step.policy.asksTheServer else { return [] }
        if own.isEmpty { return [fault(.freshness, "the server was not asked: \(what)")] }
        if load.step.policy == .reload || load.step.policy == .reloadAll {
            return [fault(.freshness, "not loaded anew: \(what)")]
        }
        return load.versions.contains(head.version) ? [] : [fault(.freshness, "not the server's version: \(what)")]
    }

    /// A stored redirect must obey the same rules of trust and credentials.
    private func redirect(_ head: PageHead) -> [Fault] {
        guard let via = head.via, via != load.number, let first = world.loads[via] else { return [] }
        if load.step.way.switchesProtocols || first.step.way.switchesProtocols {
            return [fault(.freshness, "a redirect of another protocol's is stored: that of load \(via)")]
        }
        guard let hop = world.requests[via]?.last(where: { $0.page == .away }) else { return [] }
        let what = "the redirect of \(hop.server) \(hop.identity.map { "with the \($0) identity " } ?? "")obtained by load \(via)"
        guard load.accepts(hop.identity) else { return [fault(.trust, "what it would refuse: \(what)")] }
        let trust = reach(from: first, hop.identity, at: load.step.origin, what)
        guard trust.isEmpty, let credential = hop.credential, credential != load.credential else { return trust }
        if world.accepted[load.session]?[hop.server]?.contains(credential) == true { return [] }
        return [fault(.credential, "has \(load.credential ?? "none"), and follows \(what) with \(credential)")]
    }

    // MARK: Cookies

    private static func cookie(_ cookies: [String]) -> String? { cookies.first { $0.hasPrefix("sid=") } }

    /// Whether loads of other processes have set or removed cookies; these cookies may become visible between two reports.
    private var othersLogIn: Bool {
        world.loads.values.contains { $0.process != load.process && $0.step.login != nil }
    }

    /// A cookie is stored before its response is delivered, and stored cookies are sent.
    private func cookies() -> [Fault] {
        guard report.error == nil, load.isAlone, !load.isByProtocol, load.step.service == .http else { return [] }
        if load.step.way == .stream { return cookiesOfStream() }
        var faults: [Fault] = []
        let (before, now) = (Self.cookie(report.cookiesBefore), Self.cookie(report.cookies))
        // If a stored redirect was followed, the first request is for the target.
        if let request = own.first, request.page == load.step.page, request.cookie != before, request.cookie != now, !othersLogIn
        {
            faults.append(fault(.cookie, "sent \(request.cookie ?? "none"), and its store had \(before ?? "none")"))
        }
        guard let login = load.step.login, isWhole, let text = report.body, let head = PageText.head(of: text),
            head.load == load.number
        else { return faults }
        let isThere = login == .anonymous ? now == nil : now?.hasSuffix("-\(load.number)") == true
        if !isThere {
            faults.append(fault(.cookie, "told of the response that sets a cookie when the store had \(now ?? "none")"))
        }
        return faults
    }

    /// Over a stream, only the app handles cookies.
    private func cookiesOfStream() -> [Fault] {
        if let cookie = own.first?.cookie { return [fault(.cookie, "the session adds \(cookie) to what the app writes")] }
        let isStored = Self.cookie(report.cookies)?.hasSuffix("-\(load.number)") == true
        return isStored ? [fault(.cookie, "a cookie is stored that the app itself read from a stream")] : []
    }

    // MARK: Messages

    /// Messages of a WebSocket arrive in order, and completely if the task succeeds; so does the content of an FTP upload.
    private func messages() -> [Fault] {
        guard load.step.way == .webSocket || stores && report.error == nil else { return [] }
        guard load.sent.starts(with: load.received), report.error != nil || load.received == load.sent else {
            return [fault(.messages, "the server got \(load.received) of \(load.sent)")]
        }
        return []
    }
}
