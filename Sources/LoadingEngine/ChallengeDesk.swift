//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import HTTPRules
import HTTPWire
import LoadingModel

/// Answers the challenges of a server: with the user info of the URL, then with what the app says.
enum ChallengeDesk {
    /// A person may mistype a few times; a program that gives the same wrong password for ever must end.
    static let maximumAttempts = 20

    /// The hop that answers a 401, or nil where the 401 is to be delivered.
    @inline(never)
    static func answer(
        _ head: ResponseHead, _ response: LoadResponse, _ hop: Hop, _ url: URL, in load: Load
    ) async throws(LoadError) -> Hop? {
        let challenges = AuthenticateHeader.challenges(in: head.headers.all("WWW-Authenticate"))
        guard let basic = challenges.first(where: { $0.isScheme("Basic") }),
            let target = try? RequestTarget(url), hop.challengesAnswered < maximumAttempts
        else { return nil }
        if hop.challengesAnswered == 0, let user = target.user {
            return Self.hop(hop, user: user, password: target.password ?? "")
        }
        guard load.wants(.challenges) else { return nil }
        let question = ChallengeQuestion(
            scheme: "Basic", realm: basic.realm, host: target.origin.host, port: target.origin.port,
            urlScheme: target.origin.scheme, isProxy: false, previousFailureCount: hop.challengesAnswered,
            proposed: hop.proposedCredential, response: response
        )
        guard case .credential(let answer) = try await load.ask(.challenge(question)) else { return nil }
        switch answer {
        case .useCredential(let user, let password): return Self.hop(hop, user: user, password: password)
        case .continueWithoutCredential, .performDefaultHandling, .rejectProtectionSpace: return nil
        case .cancel: throw LoadError(.cancelled, "the authentication challenge was cancelled", url: url)
        }
    }

    private static func hop(_ hop: Hop, user: String, password: String) -> Hop? {
        guard let credentials = BasicCredentials.headerValue(user: user, password: password) else { return nil }
        hop.challengesAnswered += 1
        hop.proposedCredential = (user, password)
        hop.request.headers.remove("Authorization")
        hop.extraFields = [("Authorization", credentials)]
        return hop
    }
}
