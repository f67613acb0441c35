// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// Answers the challenges of one command's loads: user authentication and server trust.
///
/// The login and the client certificate that the user specifies are sent only to the server that the user names. After a redirect
/// to another server, this type uses only logins from a `.netrc` file or the credential store, and only those for that server.
final class ChallengeAnswers: Sendable {
    typealias Answer = (URLSession.AuthChallengeDisposition, URLCredential?)

    /// The options that determine the answers.
    struct Plan: Sendable {
        var login: Login?
        /// The logins for hosts that redirects lead to.
        var netrc: Netrc?
        /// The permitted authentication methods; nil for any.
        var methods: Set<String>?
        var identity: SecIdentity?
        var pins: KeyPins?
        var trustsAnybody = false
        /// Whether password challenges are answered; otherwise, they are left to the session.
        var logsIn = true
    }

    private let place: ServerOrigin?
    private let plan: Plan
    private let refusal = Mutex<ToolFailure?>(nil)

    init(_ plan: Plan, for url: URL?) {
        self.plan = plan
        place = url.flatMap(ServerOrigin.init)
    }

    /// The reason why an answer to a challenge ended the load; nil if no answer did.
    var failure: ToolFailure? { refusal.withLock { $0 } }

    func answer(_ challenge: URLAuthenticationChallenge) -> Answer {
        let space = challenge.protectionSpace
        switch space.authenticationMethod {
        case NSURLAuthenticationMethodServerTrust: return evaluateTrust(space)
        case NSURLAuthenticationMethodClientCertificate:
            guard let identity = plan.identity, isForNamedServer(space) else { return (.performDefaultHandling, nil) }
            return (.useCredential, URLCredential(identity: identity, certificates: nil, persistence: .forSession))
        default: return authenticate(challenge, space)
        }
    }

    private func evaluateTrust(_ space: URLProtectionSpace) -> Answer {
        guard let trust = space.serverTrust else { return (.performDefaultHandling, nil) }
        if let pins = plan.pins, !pins.accept(trust) {
            refusal.withLock { refusal in
                refusal = refusal ?? ToolFailure(90, "the public key of \(space.host) does not match --pin")
            }
            return (.cancelAuthenticationChallenge, nil)
        }
        return plan.trustsAnybody ? (.useCredential, URLCredential(trust: trust)) : (.performDefaultHandling, nil)
    }

    private func authenticate(_ challenge: URLAuthenticationChallenge, _ space: URLProtectionSpace) -> Answer {
        // The session answers the challenges of proxies itself, from its configuration.
        guard plan.logsIn, !space.isProxy() else { return (.performDefaultHandling, nil) }
        if let methods = plan.methods, !methods.contains(space.authenticationMethod) { return (.rejectProtectionSpace, nil) }
        guard challenge.previousFailureCount == 0 else {
            // Over TLS, another authentication scheme can be tried. In clear text, another one could reveal the password that the
            // first protected.
            return (space.protocol == NSURLProtectionSpaceHTTPS ? .rejectProtectionSpace : .performDefaultHandling, nil)
        }
        if let login = plan.login, isForNamedServer(space) {
            return use(login.user, login.password)
        }
        if let login = netrcLogin(for: space) { return use(login.user, login.password) }
        if challenge.proposedCredential == nil, plan.login == nil, let stored = StoredCredentials.credential(for: space) {
            return use(stored.user ?? "", stored.password ?? "")
        }
        return (.performDefaultHandling, nil)
    }

    /// Returns the `.netrc` login for exactly the challenge's host; nil if the login would be sent in clear text although the user
    /// asked for TLS.
    private func netrcLogin(for space: URLProtectionSpace) -> Login? {
        guard let netrc = plan.netrc, let place, place.scheme == "http" || space.protocol == NSURLProtectionSpaceHTTPS else {
            return nil
        }
        return netrc.login(at: space.host, takesDefault: false)
    }

    /// Uses a credential for this run only; stored credentials stay unchanged.
    private func use(_ user: String, _ password: String) -> Answer {
        (.useCredential, URLCredential(user: user, password: password, persistence: .forSession))
    }

    private func isForNamedServer(_ space: URLProtectionSpace) -> Bool {
        place?.covers(host: space.host, port: space.port, scheme: space.protocol ?? "") ?? false
    }
}
