// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores

/// Chooses the login of an FTP load: from the URL, the session, the storage, or anonymous.
///
/// After a refusal, the app is asked for a login.
struct FTPLogin {
    private let target: FTPTarget
    private let space: ProtectionSpace
    /// Nil means `anonymous` (RFC 1635).
    private var current: LoadCredential?
    private var hasBegun = false
    private var triedStored = false
    private var failureCount = 0
    /// Whether the user name comes from the URL.
    private var isOfURL = false

    init(to target: FTPTarget, in load: Load) {
        self.target = target
        space = ProtectionSpace(host: target.origin.host, port: target.origin.port, kind: "ftp", method: .default)
    }

    /// Returns the user and the password to try next.
    mutating func next(after refusal: String?, in load: Load) async throws(LoadError) -> (user: [UInt8], password: [UInt8]) {
        if let refusal {
            try await replace(refusal, in: load)
        } else if !hasBegun {
            hasBegun = true
            try await first(in: load)
        }
        guard let user = current?.user, let password = current?.password else {
            // The password is a constant: it must not disclose the user's name or the host name.
            return (Array("anonymous".utf8), Array("anonymous@".utf8))
        }
        let login = (user: OctetText.octets(of: user), password: OctetText.octets(of: password))
        // Byte FF is a command of Telnet (RFC 959, section 5.3).
        for octets in [login.user, login.password] where octets.contains(where: { $0 < 0x20 || $0 == 0x7F || $0 == 0xFF }) {
            throw LoadError(.userAuthenticationRequired, "a user or password with a control character cannot be sent over FTP")
        }
        return login
    }

    private mutating func first(in load: Load) async throws(LoadError) {
        if let user = target.user, !user.isEmpty {
            isOfURL = true
            current = LoadCredential(.password(user: user, password: target.password ?? ""), persistence: .none)
            if target.password == nil, let stored = try await ChallengeDesk.stored(for: space, in: load), stored.user == user {
                triedStored = true
                current = stored
            }
            return
        }
        if let known = load.session.credentials.login(to: target.origin) {
            current = known
            return
        }
        guard let stored = try await ChallengeDesk.stored(for: space, in: load), case .password = stored.kind else { return }
        triedStored = true
        current = stored
        guard load.wants(.challenges) else { return }
        // The app decides whether to use the stored credential.
        switch try await ask(proposing: stored, in: load) {
        case .useCredential(let credential): current = credential
        case .performDefaultHandling, .rejectProtectionSpace: break
        case .cancel: throw Self.cancelled
        }
    }

    private mutating func replace(_ refusal: String, in load: Load) async throws(LoadError) {
        let refused = current
        if let refused {
            failureCount += 1
            load.session.credentials.forget(refused, to: target.origin)
        }
        let stored = triedStored ? nil : try await ChallengeDesk.stored(for: space, in: load)
        guard load.wants(.challenges) else { return try take(stored, insteadOf: refused, refusal) }
        switch try await ask(proposing: refused ?? stored, in: load) {
        case .useCredential(let credential):
            guard let credential, case .password = credential.kind else { throw Self.refused(refusal) }
            isOfURL = false
            current = credential
        case .performDefaultHandling: try take(stored, insteadOf: refused, refusal)
        case .rejectProtectionSpace: throw Self.refused(refusal)
        case .cancel: throw Self.cancelled
        }
    }

    private mutating func take(
        _ stored: LoadCredential?, insteadOf refused: LoadCredential?, _ refusal: String
    ) throws(LoadError) {
        guard let stored, case .password = stored.kind, stored.kind != refused?.kind else { throw Self.refused(refusal) }
        triedStored = true
        isOfURL = false
        current = stored
    }

    private func ask(proposing proposed: LoadCredential?, in load: Load) async throws(LoadError) -> ChallengeAnswer {
        var question = ChallengeQuestion(space)
        question.previousFailureCount = failureCount
        question.proposed = proposed
        guard case .credential(let answer) = try await load.ask(.challenge(question)) else { return .rejectProtectionSpace }
        return answer
    }

    private static var cancelled: LoadError { LoadError(.cancelled, "the authentication challenge was cancelled") }
    private static func refused(_ refusal: String) -> LoadError {
        LoadError(
            .userAuthenticationRequired,
            "the server refused the login (\(refusal)); provide one in the URL, the credential storage, or answer the challenge"
        )
    }

    /// Records that the server accepted the login.
    ///
    /// Later loads of the session use the login, and the storage keeps it if the login's persistence allows that.
    func accepted(in load: Load) {
        guard let current, !isOfURL, current.persistence != .none else { return }
        load.session.credentials.remember(current, to: target.origin)
        guard current.persistence != .forSession else { return }
        ChallengeDesk.store(current, for: space, in: load)
    }

    /// The credential with which the load is logged in.
    var sentCredential: SentFields.Credential {
        guard let current else { return .field }
        return .text("\(current.user ?? "") \(current.password ?? "")")
    }
}
