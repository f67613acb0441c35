//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Foundation
internal import LoadingModel

/// Challenges as the app sees them, and its answers as the engine understands them.
enum ChallengeTranslation {
    static func challenge(_ question: ChallengeQuestion) -> URLAuthenticationChallenge {
        URLAuthenticationChallenge(
            protectionSpace: space(question),
            proposedCredential: question.proposed.map {
                URLCredential(user: $0.user, password: $0.password, persistence: .forSession)
            },
            previousFailureCount: question.previousFailureCount,
            failureResponse: URLResponse.make(question.response)
        )
    }

    private static func space(_ question: ChallengeQuestion) -> URLProtectionSpace {
        let method = method(of: question.scheme)
        if question.isProxy {
            return URLProtectionSpace(
                proxyHost: question.host, port: question.port, type: question.urlScheme, realm: question.realm,
                authenticationMethod: method
            )
        }
        return URLProtectionSpace(
            host: question.host, port: question.port, protocol: question.urlScheme, realm: question.realm,
            authenticationMethod: method
        )
    }

    private static func method(of scheme: String) -> String {
        switch scheme.lowercased() {
        case "basic": NSURLAuthenticationMethodHTTPBasic
        case "digest": NSURLAuthenticationMethodHTTPDigest
        case "ntlm": NSURLAuthenticationMethodNTLM
        case "negotiate": NSURLAuthenticationMethodNegotiate
        default: NSURLAuthenticationMethodDefault
        }
    }

    static func answer(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) -> ChallengeAnswer {
        switch disposition {
        case .useCredential:
            guard let user = credential?.user, let password = credential?.password else { return .continueWithoutCredential }
            return .useCredential(user: user, password: password)
        case .performDefaultHandling: return .performDefaultHandling
        case .cancelAuthenticationChallenge: return .cancel
        case .rejectProtectionSpace: return .rejectProtectionSpace
        }
    }
}

extension URLAuthenticationChallenge {
    /// Whether the challenge is about a connection or an identity that tasks share, so that the session's method is asked first.
    var concernsSession: Bool {
        switch protectionSpace.authenticationMethod {
        case NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate, NSURLAuthenticationMethodNTLM,
            NSURLAuthenticationMethodNegotiate:
            true
        default: false
        }
    }
}
