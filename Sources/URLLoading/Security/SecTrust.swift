// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import LoadingEngine
internal import LoadingModel
internal import LoadingTrust
internal import Synchronization

/// A certificate chain, with the policies and roots for its evaluation.
///
/// In a challenge, the policies and roots are initially those of the load: TLS, the host of the URL, and the session's roots or the
/// system's. A trust object may be used from any thread.
public final class SecTrust: NSObject, Sendable {
    private struct State {
        var policies: [SecPolicy]
        var anchors: [SecCertificate]?
        /// Nil if the app has not set this value; in that case, the anchors, if there are any, are the only roots.
        var trustsOnlyAnchors: Bool?
        var date: Date?
        var allowsFetching = true
        /// Identifies the chain and the fault to ignore.
        var exceptions: Data?
        var verdict: (question: TrustQuestion, judgement: TrustJudgement)?
    }

    typealias IssuerFetch = @Sendable (_ url: String, _ patience: Double) async -> IssuerAnswer

    /// The presented certificates in DER.
    let presented: [Data]
    private let roots: [Data]
    /// Fetches certificates that the server did not send; nil if there is no connection, or its session fetches none.
    private let fetchIssuer: IssuerFetch?
    private let state: Mutex<State>

    /// Makes the trust object of a challenge.
    ///
    /// - Parameters:
    ///   - chain: The chain that the server presented in DER, leaf first.
    ///   - host: The host name or IP address of the URL.
    ///   - roots: The session's roots in DER; empty for the system's.
    ///   - fetchIssuer: Fetches certificates that the server did not send.
    convenience init(chain: [Data], host: String, roots: [Data], fetchIssuer: IssuerFetch? = nil) {
        self.init(chain, policies: [SecPolicy(.tls(isServer: true, host: host))], roots: roots, fetchIssuer: fetchIssuer)
    }

    init(_ chain: [Data], policies: [SecPolicy], roots: [Data] = [], fetchIssuer: IssuerFetch? = nil) {
        presented = chain
        self.fetchIssuer = fetchIssuer
        self.roots = roots
        state = Mutex(State(policies: policies))
        super.init()
    }

    /// A summary of the leaf certificate, and the result of the evaluation.
    public override var description: String {
        "<SecTrust: \(presented.first.flatMap { CertificateFacts(der: $0)?.subjectSummary } ?? "unreadable"), \(result)>"
    }

    // MARK: Settings

    func set(policies: [SecPolicy]) { state.withLock { $0.policies = policies } }

    var policies: [SecPolicy] { state.withLock(\.policies) }

    /// Sets the anchors; nil restores the session's or the system's roots.
    func set(anchors: [SecCertificate]?) {
        state.withLock { state in
            state.anchors = anchors
            if anchors == nil { state.trustsOnlyAnchors = nil }
        }
    }

    var anchors: [SecCertificate]? { state.withLock(\.anchors) }

    func set(trustsOnlyAnchors: Bool) { state.withLock { $0.trustsOnlyAnchors = trustsOnlyAnchors } }

    func set(allowsFetching: Bool) {
        state.withLock { state in
            if state.allowsFetching != allowsFetching { state.verdict = nil }
            state.allowsFetching = allowsFetching
        }
    }

    func set(date: Date) { state.withLock { $0.date = date } }

    var date: Date { state.withLock(\.date) ?? Date() }

    // MARK: Evaluation

    /// Evaluates the chain, and blocks the calling thread until the result is known.
    func evaluate() -> TrustFailure? {
        let judgement = judge()
        guard let failure = judgement.failure else { return nil }
        return state.withLock(\.exceptions) == exceptions(for: failure) ? nil : failure
    }

    var result: SecTrustResultType {
        guard let verdict = state.withLock(\.verdict), verdict.question == question else { return .invalid }
        guard let failure = verdict.judgement.failure else { return .unspecified }
        if state.withLock(\.exceptions) == exceptions(for: failure) { return .proceed }
        return failure.reason == .malformed ? .fatalTrustFailure : .recoverableTrustFailure
    }

    /// The validated chain; if there is no such chain, the presented certificates that form a path from the leaf to the last known
    /// issuer.
    var chain: [SecCertificate] {
        let judgement = judge()
        let chain = judgement.chain.isEmpty ? TrustCheck.path(through: presented) : judgement.chain
        return chain.map { SecCertificate(presented: $0) }
    }

    /// The exceptions that make an evaluation ignore the current fault, and no other fault.
    var exceptions: Data? { judge().failure.map(exceptions) ?? Data([0]) }

    /// Replaces the exceptions if the new ones are for this chain and its current fault; otherwise only removes the earlier ones.
    ///
    /// - Returns: True if the new exceptions are nil or apply.
    func set(exceptions: Data?) -> Bool {
        let areApplicable = exceptions == nil || exceptions == self.exceptions
        state.withLock { $0.exceptions = areApplicable ? exceptions : nil }
        return areApplicable
    }

    private func exceptions(for failure: TrustFailure) -> Data {
        Data("\(failure.reason)\n".utf8) + presented.reduce(into: Data()) { $0 += Data("\($1.count)\n".utf8) + $1 }
    }

    private var question: TrustQuestion {
        let state = state.withLock { $0 }
        var question = TrustQuestion(presented, hosts: [])
        question.use = .anything
        for policy in state.policies {
            guard case .tls(let isServer, let host) = policy.rule else { continue }
            question.use = isServer ? .server : .client
            if let host { question.hosts.append(host) }
        }
        question.roots = roots
        question.extraRoots = state.anchors?.map(\.der) ?? []
        question.trustsOnlyExtraRoots = state.trustsOnlyAnchors ?? (state.anchors != nil)
        question.date = state.date
        return question
    }

    private func judge() -> TrustJudgement {
        let question = question
        if let verdict = state.withLock(\.verdict), verdict.question == question { return verdict.judgement }
        // A fetch would wait for ever for the loop that is waiting for its result.
        let mayFetch = state.withLock(\.allowsFetching) && !question.trustsOnlyExtraRoots && !SessionEngine.isOnLoop
        let fetch = mayFetch ? fetchIssuer : nil
        let judgement = CallingThread.wait { await Self.judge(question, fetch) }
        state.withLock { $0.verdict = (question, judgement) }
        return judgement
    }

    /// Judges a chain, and fetches issuers that are missing.
    private static func judge(_ question: TrustQuestion, _ fetch: IssuerFetch?) async -> TrustJudgement {
        var search = IssuerSearch()
        var completed = question
        let end = ContinuousClock.now + .seconds(IssuerSearch.patience)
        while true {
            var judgement = await TrustCheck.judge(completed)
            guard let fetch, let url = search.next(after: judgement.failure) else {
                judgement.failure = judgement.failure.map(search.outcome)
                return judgement
            }
            switch await fetch(url, (end - .now) / .seconds(1)) {
            case .certificates(let certificates): search.take(certificates, from: url)
            case .unavailable(let reason): search.fail(at: url, reason)
            }
            completed.chain = question.chain + search.found
        }
    }
}
