// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The result of a load for its caller.
package struct Outcome: Hashable, Sendable, Codable, CustomStringConvertible {
    package var status: Int?
    /// The ``Body`` label of the delivered bytes; nil for a failed load.
    package var body: String?
    package var error: Int?
    /// The text of the error, for display; it is not compared.
    package var note: String?

    package init(status: Int? = nil, body: String? = nil, error: Int? = nil, note: String? = nil) {
        self.status = status
        self.body = body
        self.error = error
        self.note = note
    }

    /// The code that stands for a failure with any code.
    package static let anyError = 0
    /// The code that stands for a failure of trust: an untrusted certificate or an unknown root.
    package static let untrusted = 1
    private static let trustCodes = [-1202, -1203]

    package static func failed(_ code: Int, _ note: String? = nil) -> Outcome { Outcome(error: code, note: note) }

    package func matches(_ seen: Outcome) -> Bool {
        if let error, let other = seen.error {
            return error == Self.anyError || error == other || (error == Self.untrusted && Self.trustCodes.contains(other))
        }
        return self == seen
    }

    package var description: String {
        if let error { return "error \(error)\(note.map { " (\($0))" } ?? "")" }
        return "\(status ?? 0) '\(body ?? "")'"
    }
}

/// The expected or observed result of a step.
package struct Report: Hashable, Sendable, Codable, CustomStringConvertible {
    package var label: String
    package var outcome: Outcome
    package var seen: [SeenRequest]
    /// The storage's cookies for the document after the step, by name; nil without a storage.
    package var cookies: [String: String]?

    package init(label: String, outcome: Outcome, seen: [SeenRequest], cookies: [String: String]?) {
        self.label = label
        self.outcome = outcome
        self.seen = seen
        self.cookies = cookies
    }

    package func matches(_ other: Report) -> Bool {
        outcome.matches(other.outcome) && seen == other.seen && cookies == other.cookies
    }

    package var description: String {
        let requests = seen.map { "\n        \($0)" }.joined()
        let stored = cookies.map { $0.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ") }
        return "\(label): \(outcome); cookies [\(stored ?? "no storage")]; \(seen.count) requests\(requests)"
    }
}

/// A simple model of what a program with this API and its servers observe, written from the RFCs and the documented behaviour.
///
/// If several results are allowed, the model chooses one of them, and runs once for each possible choice.
package struct Model {
    enum Trust: Equatable { case shared, own(String), refused(Int) }

    struct Entry {
        var url: String
        /// The fields named by `Vary`, as sent in the request.
        var varied: [String: String] = [:]
        var credential: String?
        var isPublic = false
        var trust = Trust.shared
        var status: Int
        var label: String
        var tag: String?
        var isFresh: Bool
        /// The length of the stored beginning of the body; nil if the body is complete.
        var partLength: Int?
        var isPart: Bool { partLength != nil }
        var location: String?
        /// Whether the stored bytes are encoded, so that no range is taken from them.
        var isCoded = false
        /// Whether another process has stored the response.
        var isOfOther = false
    }

    struct Cookie {
        var name: String
        var value: String
        var isForAll = false
        var isSecure = false
    }

    let row: Row
    let folder: String
    var origin: OriginState
    var caches: [String: [Entry]] = [:]
    var jars: [String: [Cookie]] = [:]
    /// The default credential of each credential storage.
    var stored: [String: String] = [:]
    /// The user whose credential a server accepted, by session.
    var accepted: [String: String] = [:]
    var seen: [SeenRequest] = []
    /// The open HTTP/2 connections of sessions.
    var openHTTP2Connections: Set<String> = []
    private var choices: [Int]
    private var taken: [(value: Int, count: Int)] = []
    /// The choices for named questions, which have one answer per run.
    private var known: [String: Bool] = [:]

    init(row: Row, folder: String, choices: [Int]) {
        self.row = row
        self.folder = folder
        self.choices = choices
        origin = OriginState(row)
    }

    /// All allowed observations of a row: the reports of its loads, in order.
    package static func traces(of row: Row, folder: String, limit: Int = 400) -> [[Report]] {
        var traces: [[Report]] = []
        var next: [Int]? = []
        while let choices = next, traces.count < limit {
            var model = Model(row: row, folder: folder, choices: choices)
            let trace = model.run(Story.steps(of: row))
            if !traces.contains(trace) { traces.append(trace) }
            // The next run takes the next value at the last choice that has one.
            var taken = model.taken
            while let last = taken.last, last.value + 1 == last.count { taken.removeLast() }
            if let last = taken.popLast() { next = taken.map(\.value) + [last.value + 1] } else { next = nil }
        }
        return traces
    }

    /// Chooses one of several allowed results.
    mutating func pick(_ count: Int) -> Int {
        let value = taken.count < choices.count ? choices[taken.count] : 0
        taken.append((value, count))
        return value
    }

    mutating func choose() -> Bool { pick(2) == 1 }

    /// Returns the same answer for the same question throughout a run.
    mutating func choose(_ question: String) -> Bool {
        if let answer = known[question] { return answer }
        let answer = choose()
        known[question] = answer
        return answer
    }

    private mutating func run(_ steps: [Step]) -> [Report] {
        var reports: [Report] = []
        for step in steps {
            switch step {
            case .deploy: origin.version += 1
            case .enter(let phase): origin.phase = phase
            case .signIn(let session, let login, let user):
                if login == .storage, let place = credentialPlace(session) { stored[place] = user }
                if login == .cookie, let place = jar(session) {
                    jars[place, default: []].removeAll { $0.name == "who" }
                    if let user { jars[place, default: []].append(Cookie(name: "who", value: user)) }
                }
            case .setCookie(let session, let name, let value):
                guard let place = jar(session) else { continue }
                jars[place, default: []].append(Cookie(name: name, value: value))
            case .load(let order):
                seen = []
                let outcome = load(order)
                let storage = jar(order.session).map { place in
                    let isSecure = order.scheme == "https"
                    let cookies = jars[place, default: []].filter { isSecure || !$0.isSecure }
                    return Dictionary(cookies.map { ($0.name, $0.value) }) { $1 }
                }
                reports.append(Report(label: order.label, outcome: outcome, seen: seen, cookies: storage))
            }
        }
        return reports
    }

    // MARK: Stores

    /// The name of a session's response store, or nil.
    func cache(_ session: SessionOrder) -> String? {
        switch session.kind {
        case .noCache, .background: nil
        case .ephemeral: "ephemeral"
        case .ownCache: "own"
        case .standard, .noCookies, .noCredentials, .twoSharing, .twoProcesses, .backgroundData: "shared"
        }
    }

    func jar(_ session: SessionOrder) -> String? {
        switch session.kind {
        case .noCookies: nil
        case .ephemeral: "ephemeral"
        default: "shared"
        }
    }

    func credentialPlace(_ session: SessionOrder) -> String? {
        switch session.kind {
        case .noCredentials: nil
        case .ephemeral: "ephemeral"
        default: "shared"
        }
    }

    // MARK: Trust

    /// Whether the session's options, not the URL, name the server.
    func isSubstituted(_ session: SessionOrder) -> Bool { session.route == .unixSocket || session.route == .otherAddress }

    /// The basis on which a session trusts the server that it connects to.
    func trust(_ session: SessionOrder, scheme: String) -> Trust {
        let own = Trust.own(session.name + (session.isTrustOfTask ? "'s task" : ""))
        let good = isSubstituted(session) ? own : .shared
        if scheme == "http" { return good }
        let hasUnknownRoot = session.isIntercepted || [.sessionRoots, .delegateAnswer, .refused].contains(row.security)
        let untrusted = Trust.refused(Outcome.anyError)
        switch session.trust {
        case .clear, .system, .refused, .pinnedRight: return hasUnknownRoot ? .refused(Outcome.untrusted) : good
        case .pinnedWrong: return .refused(Outcome.untrusted)
        case .sessionRoots: return hasUnknownRoot ? own : untrusted
        case .delegateAnswer: return hasUnknownRoot ? own : good
        case .clientCertificate: return hasUnknownRoot ? untrusted : own
        }
    }
}
