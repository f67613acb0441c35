// SPDX-License-Identifier: Apache-2.0

import HTTPRules

/// For any `WWW-Authenticate` fields, the authentication flow ends and never downgrades to Basic without TLS.
///
/// Each Digest response is one field with the values of its challenge, and contains neither the password nor line breaks.
///
/// The input has a block of lines for each response; empty lines separate blocks. A line that begins with `=` is an
/// `Authentication-Info`.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzAuthenticate(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let text = String(decoding: UnsafeBufferPointer(start: data, count: size), as: UTF8.self)
    let responses = text.split(separator: "\n\n", omittingEmptySubsequences: true).map { block in
        let lines = block.split(separator: "\n").map { String($0) }
        let offers = AuthenticationOffer.strongestFirst(AuthenticateHeader.challenges(in: lines.filter { !$0.hasPrefix("=") }))
        return (info: lines.filter { $0.hasPrefix("=") }, offers: offers)
    }
    for isSecure in [true, false] {
        var flow = AuthenticationFlow(isSecure: isSecure)
        var session: DigestSession?
        var offered: Set<AuthenticationScheme> = []
        var rejected: Set<AuthenticationScheme> = []
        var steps = 0
        // Repeat the responses, because a server can send challenges forever.
        loop: while !responses.isEmpty {
            let (info, offers) = responses[steps % responses.count]
            for line in info { read(String(line.dropFirst()), &session) }
            precondition(zip(offers, offers.dropFirst()).allSatisfy { $0.0 > $1.0 }, "not the strongest first")
            offered.formUnion(offers.map(\.0))
            switch flow.next(offers) {
            case nil: break loop
            case .ask(let scheme, let challenge, let failures):
                precondition(failures <= steps && !rejected.contains(scheme), "\(scheme) asked for")
                precondition(isSecure || scheme != .basic || offered.subtracting(rejected) == [.basic], "Basic in the clear")
                if scheme == .digest { session = answer(challenge, DigestSession(challenge)) }
                if steps % 5 == 4 {
                    rejected.insert(scheme)
                    flow.rejected(scheme)
                } else {
                    flow.answered(scheme, with: "user")
                }
            case .again(let scheme, let challenge):
                precondition(scheme != .basic && !rejected.contains(scheme), "\(scheme) again")
                if scheme == .digest {
                    guard var stale = session, stale.accept(challenge) else {
                        preconditionFailure("a stale nonce was not accepted")
                    }
                    session = answer(challenge, stale)
                } else {
                    precondition(AuthenticationOffer.token(of: challenge) != nil, "a leg without a token")
                }
            }
            steps += 1
            precondition(steps <= AuthenticationFlow.maximumAttempts, "the flow does not end")
        }
    }
    return 0
}

/// Responds to a challenge, and parses the response like a server.
private func answer(_ challenge: AuthenticateHeader.Challenge, _ session: DigestSession?) -> DigestSession {
    guard var session else { preconditionFailure("an offered challenge cannot be answered") }
    for user in ["user", "a\"b\\c", "é\r\n"] {
        let header = session.authorization(
            user: user, password: "pass word", method: "GET", uri: "/a?b", bodyHash: { $0.hash([]) }, cnonce: "c"
        )
        precondition(!header.utf8.contains { $0 == 0x0D || $0 == 0x0A || $0 == 0 }, "a line break or NUL in \(header)")
        precondition(
            challenge.parameters.contains { $0.value.contains("pass word") } || !header.contains("pass word"),
            "the password is in \(header)")
        let answers = AuthenticateHeader.challenges(in: [header])
        guard answers.count == 1, let answer = answers.first else { preconditionFailure("not one: \(header)") }
        for name in ["nonce", "opaque"] {
            precondition(
                answer.parameter(name)?.utf8.elementsEqual((challenge.parameter(name) ?? "").utf8) ?? (name == "opaque"), name)
        }
        precondition(answer.realm == session.realm && answer.parameter("uri") == "/a?b", "changed: \(header)")
        let name = answer.parameter("username")
        precondition(
            name == nil ? answer.parameter("username*") != nil : name == user || name?.utf8.count ?? 0 >= 32,
            "the user in \(header)")
        let digits = answer.parameter("response")?.utf8.count
        precondition(digits == session.algorithm.hash([]).utf8.count, "response: \(header)")
    }
    return session
}

private func read(_ info: String, _ session: inout DigestSession?) {
    guard var known = session, let proof = known.proof else { return }
    let before = known
    let isProven = known.read(authenticationInfo: info, proof: proof)
    precondition(isProven || known == before, "an unproven Authentication-Info was accepted")
    session = before
}
