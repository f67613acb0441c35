// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import LoadingModel

/// Converts challenges for the app, and the app's answers for the engine.
enum ChallengeTranslation {
    /// Converts a challenge; `roots` are the session's own trust roots in DER, or empty for the system's.
    static func challenge(_ question: ChallengeQuestion, roots: [Data]) -> URLAuthenticationChallenge {
        URLAuthenticationChallenge(
            protectionSpace: space(question, roots),
            proposedCredential: question.proposed.flatMap(URLCredential.make),
            previousFailureCount: question.previousFailureCount,
            failureResponse: question.response.map(URLResponse.make)
        )
    }

    private static func space(_ question: ChallengeQuestion, _ roots: [Data]) -> URLProtectionSpace {
        let (space, names) = (question.space, question.distinguishedNames)
        return switch space.method {
        case .serverTrust:
            URLProtectionSpace(
                space,
                serverTrust: SecTrust(
                    chain: question.serverTrust, host: space.host, roots: roots, fetchIssuer: question.fetchIssuer))
        case .clientCertificate: URLProtectionSpace(space, distinguishedNames: names.isEmpty ? nil : names)
        default: URLProtectionSpace(space)
        }
    }

    static func answer(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) -> ChallengeAnswer {
        switch disposition {
        case .useCredential: .useCredential(credential?.forEngine)
        case .performDefaultHandling: .performDefaultHandling
        case .cancelAuthenticationChallenge: .cancel
        case .rejectProtectionSpace: .rejectProtectionSpace
        }
    }
}

extension URLCredential {
    /// Converts a credential of the engine; nil if it only declares a server trusted.
    static func make(_ credential: LoadCredential) -> URLCredential? {
        let persistence = Persistence(rawValue: credential.persistence.rawValue) ?? .forSession
        switch credential.kind {
        case .password(let user, let password):
            return URLCredential(user: user, password: password, persistence: persistence)
        case .identity(let identity):
            let issuers = identity.certificates.dropFirst().compactMap { SecCertificateCreateWithData(nil, $0 as CFData) }
            return URLCredential(identity: SecIdentity(identity), certificates: issuers, persistence: persistence)
        case .trust: return nil
        }
    }

    /// The credential for the engine; nil for a password credential without a user name or without a password.
    var forEngine: LoadCredential? {
        let persistence = LoadCredential.Persistence(rawValue: persistence.rawValue) ?? .forSession
        if isTrust { return LoadCredential(.trust, persistence: persistence) }
        if let identity {
            var identity = identity.clientIdentity
            let issuers = certificates.compactMap { ($0 as? SecCertificate).map { SecCertificateCopyData($0) as Data } }
            if !issuers.isEmpty, let own = identity.certificates.first {
                identity.certificates = [own] + issuers.filter { $0 != own }
            }
            return LoadCredential(.identity(identity), persistence: persistence)
        }
        guard let user, let password else { return nil }
        return LoadCredential(.password(user: user, password: password), persistence: persistence)
    }
}

extension URLAuthenticationChallenge {
    /// Whether the challenge concerns a connection or an identity that tasks share; if so, the session-level method is called
    /// first.
    var concernsSession: Bool {
        switch protectionSpace.authenticationMethod {
        case NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate, NSURLAuthenticationMethodNTLM,
            NSURLAuthenticationMethodNegotiate:
            true
        default: false
        }
    }
}
