// SPDX-License-Identifier: Apache-2.0

import Foundation

/// One load: redirects, challenges, and exchanges with the server.
extension Model {
    struct Location: Equatable {
        var scheme: String
        var host = "www"
        var name: String
        var text: String { "\(scheme)://\(host)/\(name)" }
        func isOrigin(of other: Location) -> Bool { scheme == other.scheme && host == other.host }
    }

    /// The state of a load in progress.
    struct Course {
        let order: LoadOrder
        let start: Location
        var place: Location
        var method: String
        var bodyLength: Int
        /// Whether the load has been redirected to another origin.
        var hasLeft = false
        /// The user whose credential answered a challenge of this load.
        var answered: String?
        var redirects = 0
        /// The partial file of a download that the daemon stopped.
        let rest: Rest?

        init(_ order: LoadOrder, from rest: Rest? = nil) {
            self.order = order
            self.rest = rest
            start = Location(scheme: order.scheme, name: order.name)
            place = start
            method = order.method
            bodyLength = order.bodyLength
        }

        /// The role of the next request in the upload, and the version of the upload protocol.
        var upload = UploadStep.creates
        var version = 8
        /// Whether the server has announced the URL at which the upload is resumed.
        var isAnnounced = false

        /// Whether the request was sent as an extended CONNECT (RFC 8441).
        var isConnect = false
        /// Whether a connection that carried the request has ended.
        var wasLost = false
        /// Whether the connection is still usable after a request on it was lost; nil while this does not matter.
        var isUsableAfterLoss: Bool?

        var isMain: Bool { order.phase == .main }
        /// Whether the load asks the server to switch protocols.
        var switches: Bool { isMain && order.way.upgrade != nil }
        var isSafe: Bool { method == "GET" || method == "HEAD" }
    }

    /// The offset at which a download resumes, and its validator.
    struct Rest {
        var offset: Int
        var tag: String
    }

    enum Exchanged {
        case answer(Answer, SeenRequest)
        case ended(Outcome)
        /// An upload of which the server has a part.
        case interrupted
        /// The daemon was killed, or has stopped the transfer.
        case restarted(Rest?)
    }

    mutating func load(_ order: LoadOrder) -> Outcome {
        var course = Course(order)
        if course.isMain, order.moment == .made, endsByCommand(order) { return .failed(-999) }
        // RFC 6455, section 4.1: the handshake is a GET.
        if course.isMain, order.way == .webSocket, order.method != "GET" { return .failed(-1000) }
        while true {
            let answer: (status: Int, label: String, location: String?)
            var exchanged = hop(&course)
            if case .interrupted = exchanged { exchanged = restOfUpload(course) }
            switch exchanged {
            case .ended(let outcome): return outcome
            case .interrupted: return .failed(Outcome.anyError)
            case .restarted(let rest):
                if choose() { accepted[order.session.name] = nil }
                course = Course(order, from: rest)
                continue
            case .answer(let given, _):
                let isRest = course.rest != nil && given.status == 206
                answer = (given.status, isRest ? given.whole : given.label, given.field("location"))
            }
            guard let location = answer.location, [301, 302, 307].contains(answer.status) else {
                if course.switches { return switched(answer.status, answer.label, course) }
                let hasBody = course.method != "HEAD" && ![204, 304].contains(answer.status)
                return Outcome(status: answer.status, body: hasBody ? answer.label : "")
            }
            course.redirects += 1
            // Apple documents a limit of 16 redirects; measurements show 20.
            if course.redirects > 20 || (course.redirects == 17 && choose("16 redirects")) {
                // Responses of a redirect loop are removed.
                if let store = cache(order.session), choose() {
                    caches[store, default: []].removeAll { $0.url == course.place.text }
                }
                return .failed(-1007)
            }
            var next = course.place
            next.name = location.split(separator: "/").last.map(String.init) ?? ""
            if location.hasPrefix("across:") { next.host = "img" }
            if location.hasPrefix("down:") { next.scheme = "http" }
            if !next.isOrigin(of: course.place) { course.hasLeft = true }
            course.place = next
            if answer.status != 307, course.method == "POST" {
                course.method = "GET"
                course.bodyLength = 0
            }
            // The body is sent again, which needs a new stream from the app.
            if course.bodyLength > 0, order.message == .streamOnce { return .failed(Outcome.anyError) }
            course.answered = nil
        }
    }

    /// The outcome of a load that asked for another protocol; it fails without the switch.
    private func switched(_ status: Int, _ label: String, _ course: Course) -> Outcome {
        // RFC 8441, section 5: over HTTP/2, any successful status has the role of 101.
        if status == 101 { return Outcome(status: course.isConnect ? 200 : 101, body: label) }
        return .failed(course.order.way == .webSocket ? -1011 : -1002)
    }

    func endsByCommand(_ order: LoadOrder) -> Bool {
        [.cancel, .cancelForResuming, .invalidate, .killProgram].contains(order.command)
    }

    // MARK: Header fields

    /// The user whose credential is sent before a challenge.
    func knownUser(_ course: Course) -> String? {
        let order = course.order
        let isHome = course.place.isOrigin(of: course.start) && !course.hasLeft
        if isHome, order.login == .requestField { return order.user }
        if let answered = course.answered { return answered }
        if course.place.scheme == order.scheme, course.place.host == "www", let known = accepted[order.session.name] {
            return known
        }
        if isHome, let user = order.session.fieldUser { return user }
        return nil
    }

    func cookieField(_ course: Course) -> String? {
        guard let place = jar(course.order.session) else { return nil }
        let cookies = jars[place, default: []].filter { cookie in
            (course.place.host == "www" || cookie.isForAll) && (!cookie.isSecure || course.place.scheme == "https")
        }
        return cookies.isEmpty ? nil : cookies.map { "\($0.name)=\($0.value)" }.sorted().joined(separator: "; ")
    }

    /// The header fields of the next request, without those of a cache.
    func fields(_ course: Course) -> [String: String] {
        var fields: [String: String] = [:]
        fields["authorization"] = knownUser(course).map(Origin.authorization)
        fields["cookie"] = cookieField(course)
        fields["x-language"] = course.order.language
        if course.order.message == .range { fields["range"] = course.order.phase == .seed ? "bytes=0-9" : "bytes=5-14" }
        if course.order.message == .condition { fields["if-none-match"] = appCondition }
        // The app did not choose the server that a redirect leads to.
        if course.switches, course.order.way == .webSocket || !course.hasLeft { fields["upgrade"] = course.order.way.upgrade }
        if let rest = course.rest { (fields["range"], fields["if-range"]) = ("bytes=\(rest.offset)-", rest.tag) }
        return fields.merging(uploadFields(course)) { $1 }
    }

    package var appCondition: String { "\"doc-v1-\(row.principal == .anonymous ? "all" : "ali")\"" }

    // MARK: The exchange

    /// One request with its response from the store or a server, including challenges.
    mutating func hop(_ course: inout Course) -> Exchanged {
        // The daemon does not keep the engine of a session between transfers.
        if course.order.session.kind == .background, choose("forgotten \(course.order.label)") {
            accepted[course.order.session.name] = nil
        }
        var tried: Set<String> = []
        while true {
            let sent: String? = knownUser(course)
            let exchanged = throughCache(&course)
            guard case .answer(let answer, let request) = exchanged else {
                // The load may have received the head of the response before its end.
                if let sent, course.answered != nil, course.place.host == "www", choose() {
                    accepted[course.order.session.name] = sent
                }
                if sent != nil, course.answered == nil, row.answer == .unauthorized, course.isMain, choose() {
                    accepted[course.order.session.name] = nil
                }
                return exchanged
            }
            guard answer.status == 401, course.place.host == "www" else {
                if let sent, answer.status != 401, course.order.login != .requestField, course.order.session.fieldUser == nil,
                    request.fields["authorization"] != nil
                {
                    accepted[course.order.session.name] = sent
                }
                return exchanged
            }
            let wasKnown = sent != nil && course.answered == nil
            if wasKnown { accepted[course.order.session.name] = nil }
            guard let user = answerToChallenge(course), !tried.contains(user), course.answered == nil,
                !(wasKnown && sent == user && course.order.login != .digestOnce && choose())
            else { return exchanged }
            tried.insert(user)
            if course.bodyLength > 0, course.order.message == .streamOnce {
                // The 401 is delivered, or the load fails because there is no new stream.
                return choose() ? exchanged : .ended(.failed(Outcome.anyError))
            }
            course.answered = user
        }
    }

    private func answerToChallenge(_ course: Course) -> String? {
        let order = course.order
        // A delegate answers every challenge.
        if order.login.isDelegate { return order.user }
        guard course.place.isOrigin(of: course.start), !course.hasLeft || order.login != .userInfo else { return nil }
        switch order.login {
        case .userInfo: return order.user
        case .storage: return credentialPlace(order.session).flatMap { stored[$0] }
        case .anonymous, .requestField, .configurationField, .cookie, .delegateAnswer, .digestOnce: return nil
        }
    }

    /// Sends a request over a connection.
    mutating func send(_ course: inout Course, _ fields: [String: String]) -> Exchanged {
        let order = course.order
        if case .refused(let code) = trust(order.session, scheme: course.place.scheme) { return .ended(.failed(code)) }
        if course.isMain, order.moment == .inLine || order.moment == .challenge, endsByCommand(order) {
            return .ended(.failed(-999))
        }
        var request = SeenRequest(
            scheme: course.place.scheme, host: course.place.host, method: course.method, name: course.place.name, fields: fields,
            bodyLength: course.bodyLength)
        // Only the answer to a challenge has a nonce that has not served.
        if row.principal == .digestOnce, fields["authorization"] != nil, course.answered == nil {
            request.fields["authorization"] = Origin.usedNonce
        }
        course.isConnect = usesExtendedConnect(&course)
        if course.isConnect { request.method = "CONNECT" }
        // The length of a stream is unknown; that of a body whose response comes early is not recorded.
        let isStream = order.message == .streamAgain || order.message == .streamOnce
        if isStream || (row.answer.comesEarly && course.isMain) { request.bodyLength = 0 }
        seen.append(request)
        if [.http2, .http2Clear].contains(row.version), request.fields["upgrade"] == nil {
            openHTTP2Connections.insert(connection(course))
        }
        if row.end == .closedWhileIdle, order.phase != .seed, choose("over a connection that is being closed \(order.label)") {
            // RFC 9110, section 9.2.2: requests that are not idempotent are not retried.
            let isLost = course.method == "POST" || order.message == .streamOnce
            if isLost, choose() { seen.removeLast() }
            if isLost { return .ended(.failed(-1005)) }
            _ = Origin.answer(request, &origin, folder: folder)
            seen.append(request)
        }
        var answer = Origin.answer(request, &origin, folder: folder)
        if let next = announced(answer, fields, &course) { return next }
        // A switch is requested over HTTP/1.1, or over HTTP/2 with CONNECT.
        let isOfHTTP2 = [.goAwayCovering, .goAwayNotCovering, .refusedStream].contains(answer.ending)
        if isOfHTTP2, request.fields["upgrade"] != nil, !course.isConnect { answer.ending = .stays }
        let isOfDaemon = order.session.kind == .background
        if answer.gate != nil, course.isMain, isOfDaemon, order.command == .killDaemon { return .restarted(nil) }
        // The daemon stops a suspended transfer. An upload is sent again; a download resumes from the last recorded position.
        let isStopped = isOfDaemon && order.command == .suspend
        if let gate = answer.gate, isStopped, course.isMain, choose() {
            guard gate == .withinBody, order.way == .download, answer.status == 200, answer.coding == .none,
                let tag = answer.field("etag"), let offset = [nil, answer.body.count / 2, answer.body.count][pick(3)]
            else { return .restarted(nil) }
            return .restarted(Rest(offset: offset, tag: tag))
        }
        if let gate = answer.gate, course.isMain, endsByCommand(order) {
            let isSwitch = answer.status == 101
            let hasBody = (course.method != "HEAD" || isSwitch) && answer.hasBody && ![301, 302, 307].contains(answer.status)
            if gate == .beforeHead || gate == .sending { return .ended(.failed(-999)) }
            let hasHead = ![.cutInHead, .reset, .silence, .goAwayNotCovering, .refusedStream].contains(answer.ending)
            if gate == .withinBody, hasBody, hasHead {
                // A response other than the switch ends the load, whatever its body.
                if course.switches, !isSwitch, choose("refused before the command") {
                    storeCookies(of: answer, course)
                    return .answer(answer, request)
                }
                // The server has sent the head when the command is given; the load may or may not have received it.
                guard choose("the head has come") else { return .ended(.failed(-999)) }
                storeCookies(of: answer, course)
                // The whole response may be requested before the command arrives.
                if isOtherPart(answer, request), choose() {
                    (request.fields["range"], request.fields["if-range"]) = (nil, nil)
                    seen.append(request)
                }
                return .ended(.failed(answer.coding == .lying && choose() ? -1016 : -999))
            }
        }
        return disturbed(&answer, request, &course)
    }

    /// Whether a WebSocket is opened as a stream of an existing HTTP/2 connection (RFC 8441).
    private mutating func usesExtendedConnect(_ course: inout Course) -> Bool {
        let order = course.order
        guard course.isMain, order.way == .webSocket, openHTTP2Connections.contains(connection(course)) else { return false }
        let isPlain =
            [.anonymous, .cookie, .requestField, .configurationField].contains(order.login) && order.session.route != .proxyAsks
        // The HTTP/2 connection may be bound to a user.
        guard isPlain else { return choose() }
        guard course.wasLost else { return true }
        // The connection may have ended together with the lost request; then no later request can use it.
        let isUsable = course.isUsableAfterLoss ?? choose()
        course.isUsableAfterLoss = isUsable
        return isUsable
    }

    private func connection(_ course: Course) -> String {
        "\(course.order.session.name) \(course.place.scheme)://\(course.place.host)"
    }

    /// The effect of the connection's end on a response.
    private mutating func disturbed(_ answer: inout Answer, _ request: SeenRequest, _ course: inout Course) -> Exchanged {
        let isIdempotent = course.method != "POST"
        let isSwitch = answer.status == 101
        let hasBody = (course.method != "HEAD" || isSwitch) && answer.hasBody
        let ending = answer.ending
        answer.ending = .stays
        // The next request may or may not find the connection open.
        if ending != .stays { (course.wasLost, course.isUsableAfterLoss) = (true, nil) }
        switch ending {
        case .cutInHead where course.isAnnounced, .reset where course.isAnnounced: return .interrupted
        case .cutInHead, .reset:
            if isIdempotent, course.order.message != .streamOnce, choose() { return send(&course, request.fields) }
            return .ended(.failed(-1005))
        case .goAwayNotCovering, .refusedStream:
            if course.bodyLength > 0, course.order.message == .streamOnce { return .ended(.failed(Outcome.anyError)) }
            return send(&course, request.fields)
        case .silence: return .ended(.failed(-1001))
        case .stays, .closes, .closedWhileIdle, .goAwayCovering, .cutInBody, .cutBeforeLastChunk: break
        }
        storeCookies(of: answer, course)
        if hasBody, answer.coding == .lying, !course.switches { return .ended(.failed(-1016)) }
        let isCut = hasBody && [.cutInBody, .cutBeforeLastChunk].contains(ending)
        if isSwitch, isCut {
            // A WebSocket lacks half a message, or the close frame, and fails. A stream of bytes just ends.
            if course.order.way == .webSocket { return .ended(.failed(-1005)) }
            if ending == .cutInBody { answer.part = 0...(Body.length / 2 - 1) }
        } else if isCut, !course.switches {
            // A redirect or a challenge is processed even if its body is incomplete.
            let reply = answer.status == 401 ? answerToChallenge(course) : nil
            let isAnswered = reply != nil && !(knownUser(course) == reply && choose())
            if !isAnswered, ![301, 302, 307].contains(answer.status), !isOtherPart(answer, request) {
                return .ended(.failed(-1005))
            }
        }
        return .answer(answer, request)
    }

    /// Whether the received part does not complete the stored one, so that the whole is requested.
    func isOtherPart(_ answer: Answer, _ request: SeenRequest) -> Bool {
        guard request.fields["if-range"] != nil else { return false }
        if answer.status == 200 { return answer.part != nil }
        guard answer.status == 206, let part = answer.part else { return answer.status == 416 }
        return request.fields["range"] != "bytes=\(part.lowerBound)-"
    }

    // MARK: Cookies

    mutating func storeCookies(of answer: Answer, _ course: Course) {
        guard let place = jar(course.order.session) else { return }
        for (name, value) in answer.fields where name == "Set-Cookie" {
            let parts = value.components(separatedBy: "; ")
            let pair = parts[0].split(separator: "=").map(String.init)
            let isSecure = parts.contains("Secure")
            // RFC 6265bis, section 5.7: a response over an insecure connection sets no cookie with `Secure`.
            if isSecure, course.place.scheme == "http" { continue }
            jars[place, default: []].removeAll { $0.name == pair[0] }
            if parts.contains("Max-Age=0") { continue }
            let isForAll = parts.contains { $0.hasPrefix("Domain=") }
            jars[place, default: []].append(Cookie(name: pair[0], value: pair[1], isForAll: isForAll, isSecure: isSecure))
        }
    }
}
