// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import HTTPRules
package import LoadingModel

/// What is decided in a TLS handshake, whatever library performs it: whether the server is trusted, what the app is asked, and which
/// identity is presented.
///
/// Each method takes what has happened, and returns the next step. Identities are for servers that have been accepted.
package struct HandshakeDecision {
    package enum Step {
        /// Ask the app about the server: ``judged(_:)``.
        case askAboutServer
        /// Check these certificates: ``checked(_:)``.
        case check([Data])
        /// Fetch the certificate of an issuer that the server did not send: ``fetched(_:from:)``.
        case fetchIssuer(at: String)
        /// Ask the app for an identity: ``chosen(_:)``.
        case askForIdentity
        case end(Outcome)
    }

    package enum Outcome {
        /// The server is trusted.
        case accept
        /// Present an identity, or none.
        case present(ClientIdentity?)
        case refuse(LoadError)
    }

    /// What a check of the chain is for.
    private enum Purpose {
        /// The app is asked only if the roots do not vouch for the server.
        case beforeAsking
        /// The roots decide.
        case deciding(isTrustedByApp: Bool)
        /// The app has decided; the server also counts as verified if the roots vouch for it.
        case afterTrust
    }

    package let demands: TLSDemands
    private let host: String
    private let renegotiation: ConnectionHolder.Renegotiation?

    /// The server's chain in DER, its own certificate first; in the end also the fetched certificates of the validated path.
    package private(set) var chain: [Data] = []
    /// The SHA-256 hashes of the keys in the server's chain.
    package private(set) var keys: [Data] = []
    /// Whether trusted roots vouch for the server.
    package private(set) var isVerified = false
    package private(set) var hasStrongKeys = false
    /// The delegate that was asked about the server last (nil stands for the session's); empty if the roots decided first.
    package private(set) var asked: [ConnectionHolder?] = []
    package private(set) var issuerURLs: [String] = []
    package private(set) var wasAskedForIdentity: Bool
    package private(set) var identity: ClientIdentity?
    private var purpose = Purpose.beforeAsking
    private var search = IssuerSearch()
    private var mayFetch = true
    private var isAccepted = false

    /// - Parameters:
    ///   - host: The name or address that the server's certificate must be valid for.
    ///   - demands: The requirements of App Transport Security for this server.
    ///   - renegotiation: Set if the server may negotiate TLS again after this handshake: its identity is sent when the server asks for
    ///     it, now or later.
    package init(host: String, demands: TLSDemands, renegotiation: ConnectionHolder.Renegotiation? = nil) {
        self.host = host
        self.demands = demands
        self.renegotiation = renegotiation
        identity = renegotiation?.identity
        wasAskedForIdentity = renegotiation != nil
    }

    // MARK: The server's certificate

    /// The server presents its chain.
    ///
    /// If `checksRootsFirst` is set, the roots are checked before the app is asked: if they vouch for the server, each delegate is asked
    /// later, before one of its tasks uses the connection. Otherwise the app is asked, and the roots decide only if it leaves that to
    /// them.
    package mutating func presented(_ chain: [Data], checksRootsFirst: Bool) -> Step {
        self.chain = chain
        return checksRootsFirst ? check(.beforeAsking) : .askAboutServer
    }

    /// Notes that a delegate is about to be asked about the server; nil stands for the session's.
    package mutating func asks(_ delegate: ConnectionHolder?) { asked = [delegate] }

    /// The app, or in its place the default, has answered the question about the server.
    package mutating func judged(_ answer: TrustAnswer) -> Step {
        if let refusal = answer.refusal(of: host) { return .end(.refuse(refusal)) }
        let isTrustedByApp = if case .trusted = answer { true } else { false }
        if isAccepted {
            // Default handling means the roots, whatever another delegate said.
            if isTrustedByApp || isVerified { return .askForIdentity }
            return refuse(.serverCertificateUntrusted, "only another delegate trusts the certificate of \(host)")
        }
        guard isTrustedByApp, !demands.enforcesTrust else { return check(.deciding(isTrustedByApp: isTrustedByApp)) }
        // Pins and key lengths are enforced whatever the app decides.
        let pins = TrustPins(leaf: demands.leafPins, ca: demands.caPins)
        let failure = TrustCheck.failure(
            ofTrusted: chain, host: host, requiresStrongKeys: demands.requiresStrongKeys, pins: pins)
        if let failure { return refuse(failure.kind, failure.message + hint(on: failure)) }
        return check(.afterTrust)
    }

    private mutating func check(_ purpose: Purpose) -> Step {
        self.purpose = purpose
        return .check(chain + search.found)
    }

    package mutating func checked(_ verdict: TrustVerdict) -> Step {
        if case .deciding = purpose, mayFetch, let url = search.next(after: verdict.failure) { return .fetchIssuer(at: url) }
        keys = verdict.keys
        if verdict.failure == nil, !search.found.isEmpty {
            issuerURLs = search.urls(for: verdict.path)
            chain += search.found.filter { verdict.path.contains($0) && !chain.contains($0) }
        }
        switch (purpose, verdict.failure.map(search.outcome)) {
        case (.beforeAsking, .some): return .askAboutServer
        case (.deciding(let isTrustedByApp), let failure?):
            return refuse(failure.kind, failure.message + (isTrustedByApp ? hint(on: failure) : ""))
        case (_, let failure):
            isVerified = failure == nil
            hasStrongKeys = demands.requiresStrongKeys
        }
        if let renegotiation, chain.first != renegotiation.serverCertificate || keys != renegotiation.keys {
            return refuse(
                .secureConnectionFailed, "\(host) presented another certificate than when it asked to negotiate TLS again")
        }
        isAccepted = true
        return .end(.accept)
    }

    package mutating func fetched(_ answer: IssuerAnswer, from url: String) -> Step {
        switch answer {
        case .certificates(let certificates): search.take(certificates, from: url)
        case .unavailable(let reason):
            search.fail(at: url, reason)
            mayFetch = reason != nil
        }
        return .check(chain + search.found)
    }

    // MARK: The client's certificate

    /// The server requests a client certificate.
    package mutating func requestedIdentity() -> Step {
        wasAskedForIdentity = true
        return .askForIdentity
    }

    /// Whether a delegate may be asked for an identity, or has to be asked about the server before: the roots decided first, or
    /// another delegate did.
    ///
    /// No delegate's identity is presented to a server about which that delegate was not asked.
    package func mayAskForIdentity(_ delegate: ConnectionHolder?) -> Bool { asked.contains(delegate) }

    package mutating func chosen(_ answer: IdentityAnswer) -> Step {
        switch answer {
        case .none: return .end(.present(nil))
        case .cancelled: return refuse(.cancelled, "the challenge for a client certificate of \(host) was cancelled")
        case .identity(let identity):
            self.identity = identity
            return .end(.present(identity))
        }
    }

    // MARK: Failures

    private func refuse(_ kind: LoadError.Kind, _ message: String) -> Step { .end(.refuse(LoadError(kind, message))) }

    /// Returns a hint that names the App Transport Security key that would let the app's decision stand; empty if there is no such
    /// key.
    private func hint(on failure: TrustFailure) -> String {
        let loads = TLSDemands.key("NSExceptionAllowsInsecureHTTPLoads", of: host)
        let keys = TLSDemands.key("NSExceptionRequiresForwardSecrecy", of: host)
        let lead = "; the app trusts it, but App Transport Security"
        switch failure.reason {
        case .pins, .unchecked: return ""
        case .weakKey where demands.requiresStrongKeys, .weakSignature where demands.requiresStrongKeys:
            let more = demands.enforcesTrust ? ", and \(loads) to true" : ""
            return "\(lead) requires stronger ones: to allow weaker ones, set \(keys) to false\(more)"
        default:
            guard demands.enforcesTrust else { return "" }
            return "\(lead) also requires the system to trust it: to change that, set \(loads) to true"
        }
    }
}

extension TLSDemands {
    /// Returns the key to set in the `NSAppTransportSecurity` dictionary for one host.
    package static func key(_ name: String, of host: String) -> String {
        "NSExceptionDomains/\(host)/\(name) in NSAppTransportSecurity"
    }
}
