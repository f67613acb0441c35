// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Which responses are stored and reused (RFC 9111), depending on trust and credentials.
extension Model {
    /// Answers from the store, or sends the request and stores the response.
    mutating func throughCache(_ course: inout Course) -> Exchanged {
        let order = course.order
        var fields = fields(course)
        var policy = course.isMain ? order.policy : .useProtocol
        // Requests for an upload's offset do not use the cache.
        if course.upload != .creates { policy = .reloadIgnoringLocal }
        // Neither downloads nor requests for another protocol use the cache.
        let usesCache = !course.isMain || order.way != .download && !course.switches
        guard let store = cache(order.session), usesCache, course.isSafe else {
            if policy == .returnDontLoad, course.isSafe { return .ended(.failed(-1008)) }
            if policy == .returnDontLoad {
                return choose() ? .ended(.failed(-1008)) : sendAndStore(&course, fields, cache(order.session))
            }
            if policy == .onlyIfCached {
                return choose() ? .answer(made504, request(course, fields)) : sendAndStore(&course, fields, cache(order.session))
            }
            return sendAndStore(&course, fields, cache(order.session))
        }
        var found = lookUp(store, course, fields)
        // A response that another process stored is seen only once the folder is read again.
        if found?.isOfOther == true, choose("not seen yet \(order.label) \(course.place.text)") { found = nil }
        if found == nil, order.login == .userInfo, let user = order.user, fields["authorization"] == nil {
            // A credential in the URL may be used before the server asks for it.
            var known = fields
            known["authorization"] = Origin.authorization(user)
            if let entry = lookUp(store, course, known), choose("known early \(order.label)") {
                found = entry
                fields = known
            }
        }
        if found?.isCoded == true, order.message == .range, course.isMain { found = nil }
        var usable = found
        if order.message == .range || order.message == .condition, course.isMain {
            // A range or a condition of the app may bypass the store.
            if found != nil, choose("past the store") { usable = nil }
        }
        if course.method == "HEAD", found != nil, choose("past the store") { usable = nil }
        // A stored response for another credential may be used if the rules allow it, but does not have to be.
        if let found, found.credential != fields["authorization"], choose("others' \(order.label)") { usable = nil }

        // A response stored for a credential that answered a challenge is used only after the server has received the credential.
        if course.answered != nil, let entry = usable, !entry.isPart,
            ![.reloadIgnoringLocal, .reloadIgnoringAll].contains(policy)
        {
            if let tag = entry.tag, entry.status == 200, course.method == "GET",
                policy != .noStore || choose("validated \(order.label)")
            {
                fields["if-none-match"] = tag
            }
            return sendAndStore(&course, fields, store)
        }

        switch policy {
        case .reloadIgnoringLocal, .reloadIgnoringAll: return sendAndStore(&course, fields, store)
        case .returnDontLoad:
            guard let entry = usable ?? found, !entry.isPart, entry.isFresh || entry.status == 200 else {
                return .ended(.failed(-1008))
            }
            return answer(entry, course, fields)
        case .returnElseLoad:
            guard let entry = usable, entry.isPart || entry.isFresh || entry.status == 200 else {
                return sendAndStore(&course, fields, store)
            }
            if !entry.isPart { return answer(entry, course, fields) }
        case .onlyIfCached:
            guard let entry = usable, !entry.isPart, entry.isFresh else {
                return .answer(made504, request(course, fields))
            }
            return answer(entry, course, fields)
        case .noStore, .noCache, .reloadRevalidating, .useProtocol: break
        }
        guard let entry = usable else { return sendAndStore(&course, fields, store) }
        if entry.isPart {
            // The load requests the rest, or the whole response again.
            if let tag = entry.tag, let length = entry.partLength, choose("the rest \(order.label)") {
                fields["range"] = "bytes=\(length)-"
                fields["if-range"] = tag
            }
            return sendAndStore(&course, fields, store)
        }
        if policy == .noStore, choose("for no-store \(order.label)") { return sendAndStore(&course, fields, store) }
        if entry.isFresh, policy == .useProtocol || policy == .noStore { return answer(entry, course, fields) }
        if let tag = entry.tag, order.message != .condition, entry.status == 200 {
            if (policy != .noStore && order.message != .range) || choose("validated \(order.label)") {
                fields["if-none-match"] = tag
            }
        }
        return sendAndStore(&course, fields, store)
    }

    private var made504: Answer { Answer(504) }

    private func request(_ course: Course, _ fields: [String: String]) -> SeenRequest {
        SeenRequest(
            scheme: course.place.scheme, host: course.place.host, method: course.method, name: course.place.name, fields: fields)
    }

    /// The answer to a request from a stored response.
    private mutating func answer(_ entry: Entry, _ course: Course, _ fields: [String: String]) -> Exchanged {
        var answer = answer(entry, course)
        if course.order.message == .condition, course.isMain, entry.tag == appCondition,
            !choose("the condition counts")
        {
            answer = Answer(304)
        }
        return .answer(answer, request(course, fields))
    }

    private func answer(_ entry: Entry, _ course: Course) -> Answer {
        var answer = Answer(entry.status, entry.location.map { [("Location", $0)] } ?? [], label: entry.label)
        if course.order.message == .range, entry.status == 200, course.isMain {
            answer.status = 206
            answer.part = 5...14
        }
        return answer
    }

    // MARK: Looking up

    /// The stored response that may answer a request, fresh or not.
    func lookUp(_ store: String, _ course: Course, _ fields: [String: String]) -> Entry? {
        caches[store, default: []].last { entry in
            guard entry.url == course.place.text, mayRead(entry, course) else { return false }
            guard entry.varied.allSatisfy({ fields[$0.key] ?? "" == $0.value }) else { return false }
            return entry.credential == nil || entry.isPublic || entry.credential == fields["authorization"]
        }
    }

    private func mayRead(_ entry: Entry, _ course: Course) -> Bool {
        let session = course.order.session
        if case .own(let name) = entry.trust { return name == session.name }
        if isSubstituted(session) { return false }
        if course.place.scheme == "https", session.trust == .sessionRoots || session.trust == .pinnedWrong { return false }
        return true
    }

    // MARK: Storing

    /// Sends a request, and updates the store as RFC 9111 requires.
    private mutating func sendAndStore(_ course: inout Course, _ fields: [String: String], _ store: String?) -> Exchanged {
        let exchanged = send(&course, fields)
        // A request for another protocol does not change the store, unless its method is unsafe.
        if course.switches, course.isSafe { return exchanged }
        guard case .answer(var answer, let request) = exchanged, let store else {
            // The load may have processed the head of a response with a truncated body.
            if let store, case .ended(let outcome) = exchanged, outcome.error != nil,
                choose("the head counted \(course.order.label)")
            {
                let reached = (course.place.text, trust(course.order.session, scheme: course.place.scheme))
                caches[store, default: []].removeAll { $0.url == reached.0 && ($0.trust == reached.1 || reached.1 == .shared) }
            }
            return exchanged
        }
        let policy = course.isMain ? course.order.policy : .useProtocol
        let trust = trust(course.order.session, scheme: course.place.scheme)
        let url = course.place.text
        func isAffected(_ entry: Entry) -> Bool { entry.url == url && (entry.trust == trust || trust == .shared) }

        if !course.isSafe {
            // RFC 9111, section 4.4: an unsafe request invalidates the stored response. This process may keep the response in
            // memory if another process sent the request.
            if (200...399).contains(answer.status), !course.order.isInChild || choose("removed \(course.order.label)") {
                caches[store, default: []].removeAll(where: isAffected)
                if let name = answer.field("location")?.split(separator: "/").last, choose("where it leads") {
                    // RFC 9111, section 4.4: "MAY also invalidate other URIs when they have the same origin".
                    let url = Location(scheme: course.place.scheme, host: course.place.host, name: String(name)).text
                    caches[store, default: []].removeAll { $0.url == url && ($0.trust == trust || trust == .shared) }
                }
            }
            return exchanged
        }
        if answer.status == 304 {
            // A policy that ignores the app's own condition before the request may also ignore it after the request.
            let mayCount = course.order.message != .condition || policy == .returnElseLoad && choose("the condition counts")
            guard let tag = request.fields["if-none-match"], mayCount,
                let index = caches[store, default: []].lastIndex(where: { $0.tag == tag && $0.url == url && mayRead($0, course) })
            else { return exchanged }
            var entry = caches[store, default: []][index]
            if entry.trust == trust || trust == .shared, !course.order.isInChild || choose("renewed in memory") {
                entry.isFresh = !isStale(answer)
                if !entry.isPublic { entry.credential = entry.credential ?? request.fields["authorization"] }
                caches[store, default: []][index] = entry
            }
            // The caller gets the stored response with its original status, not the 304.
            var renewed = self.answer(entry, course)
            renewed.hints = answer.hints
            return .answer(renewed, request)
        }
        if isOtherPart(answer, request) {
            var whole = fields
            (whole["range"], whole["if-range"]) = (nil, nil)
            return sendAndStore(&course, whole, store)
        }
        if answer.status == 206, request.fields["if-range"] != nil {
            // The stored part and the received one form the whole.
            guard let part = caches[store, default: []].last(where: { $0.isPart && $0.url == url }) else { return exchanged }
            answer.status = 200
            (answer.whole, answer.part) = (part.label, nil)
            answer.fields.removeAll { $0.0 == "Content-Range" }
        }
        keep(answer, request, course, store, trust, policy)
        return .answer(answer, request)
    }

    private func isStale(_ answer: Answer) -> Bool { answer.field("age") != nil }

    private mutating func keep(
        _ answer: Answer, _ request: SeenRequest, _ course: Course, _ store: String, _ trust: Trust, _ policy: Policy
    ) {
        let url = course.place.text
        let isDownload = course.isMain && course.order.way == .download
        guard let control = answer.field("cache-control"), ![401, 416, 429].contains(answer.status), !isDownload,
            policy != .noStore, course.method == "GET", answer.coding != .lying
        else {
            let isKnown = caches[store, default: []].contains { $0.url == url }
            // A response that is not stored may invalidate the stored one, and so may a response to HEAD; neither has to.
            if isKnown, answer.status != 401, choose("made outdated \(course.order.label) \(url)") {
                caches[store, default: []].removeAll { $0.url == url && ($0.trust == trust || trust == .shared) }
            }
            return
        }
        var entry = Entry(url: url, trust: trust, status: answer.status, label: answer.whole, isFresh: !isStale(answer))
        for name in answer.field("vary")?.lowercased().components(separatedBy: ", ") ?? [] where name != "accept-encoding" {
            entry.varied[name] = request.fields[name] ?? ""
        }
        entry.credential = request.fields["authorization"]
        entry.isPublic = control.contains("public")
        entry.tag = answer.field("etag")
        entry.location = answer.field("location")
        entry.isCoded = answer.coding != .none
        entry.isOfOther = course.order.isInChild
        if answer.status == 206 {
            // A part that does not continue a stored part may be stored, but does not have to be.
            guard request.fields["range"] == "bytes=0-9", course.order.phase == .seed else {
                let reach = caches[store, default: []].lastIndex { $0.isPart && $0.url == url && $0.tag == entry.tag }
                if let reach, request.fields["range"] == "bytes=5-14", choose("joined") {
                    caches[store, default: []][reach].partLength = 15
                    return
                }
                if caches[store, default: []].contains(where: { $0.url == url }),
                    choose("made outdated \(course.order.label) \(url)")
                {
                    caches[store, default: []].removeAll { $0.url == url && ($0.trust == trust || trust == .shared) }
                }
                return
            }
            entry.status = 200
            entry.partLength = 10
            entry.label =
                "v\(origin.version) doc for \(request.fields["authorization"].flatMap(user) ?? cookieUser(request) ?? "all")"
        }
        // This process may keep a response in memory when another process has stored a newer one.
        if course.order.isInChild, caches[store, default: []].contains(where: { $0.url == url }), choose("kept in memory") {
            return
        }
        // Responses for different credentials may be stored side by side.
        let mayStay = choose("side by side")
        caches[store, default: []].removeAll {
            $0.url == url && $0.trust == trust && $0.varied == entry.varied
                && ($0.credential == entry.credential
                    || !entry.isPart && !(mayStay && $0.credential != nil && entry.credential != nil))
                && $0.varied.keys == entry.varied.keys
        }
        // A response with another `Vary` may be removed, such as a redirect that the server no longer sends.
        func isOtherVariant(_ other: Entry) -> Bool {
            other.url == url && other.trust == trust && other.varied.keys != entry.varied.keys
        }
        if caches[store, default: []].contains(where: isOtherVariant), choose("takes its place") {
            caches[store, default: []].removeAll(where: isOtherVariant)
        }
        caches[store, default: []].append(entry)
    }

    private func user(_ field: String) -> String? { Origin.users.first { Origin.authorization($0) == field } }

    private func cookieUser(_ request: SeenRequest) -> String? {
        Origin.users.first { request.fields["cookie"]?.contains("who=\($0)") == true }
    }
}
