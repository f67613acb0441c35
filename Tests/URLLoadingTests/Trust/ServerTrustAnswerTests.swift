// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The effect of each answer to a server-trust challenge.
@Suite(.timeLimit(.minutes(1)))
struct ServerTrustAnswerTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func withJudge(
        _ judge: Judge, _ identity: TestCertificates.Identity, isTask: Bool = false,
        test: (ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withScenario(
            identity: identity, delegate: isTask ? TaskJudge(judge) : SessionJudge(judge),
            configure: { $0.tlsTrustRoots = [certificates.root] }, reply: { _ in .ok("secret") }, test: test
        )
    }

    @Test func `a credential made from the trust accepts any certificate of an exempt host`() async throws {
        let rows = [
            ("valid", certificates.valid), ("self-signed", certificates.selfSigned), ("expired", certificates.expired),
            ("not yet valid", certificates.notYetValid), ("wrong host", certificates.wrongHost),
            ("unknown root", certificates.unknownAuthority), ("missing intermediate", certificates.missingIntermediate),
        ]
        for (name, identity) in rows {
            for host in ["127.0.0.1", "localhost"] {
                try await withJudge(.trusting, identity) { (server, session) async throws in
                    #expect(try await session.text(server.url("/", host: host)) == "secret", "\(name) at \(host)")
                }
            }
        }
    }

    @Test func `default handling, or no credential, leaves trust to the roots`() async throws {
        for judge in [Judge.saying(.performDefaultHandling), .saying(.useCredential, nil)] {
            try await withJudge(judge, certificates.valid) { (server, session) async throws in
                #expect(try await session.text(server.url()) == "secret")
            }
            try await withJudge(judge, certificates.selfSigned) { (server, session) async throws in
                await expectFailure(.serverCertificateUntrusted) { try await session.data(from: server.url()) }
                #expect(server.requests.isEmpty)
            }
            #expect(judge.all.count == 2)
        }
    }

    @Test func `a credential of another kind does not trust the server`() async throws {
        let rows = [
            URLCredential(user: "user", password: "password", persistence: .forSession),
            URLCredential(
                identity: try SecIdentity(pem: Data((certificates.client.chainPEM + certificates.client.keyPEM).utf8)),
                certificates: nil, persistence: .none
            ),
        ]
        for credential in rows {
            try await withJudge(.saying(.useCredential, credential), certificates.selfSigned) { (server, session) async throws in
                await expectFailure(.serverCertificateUntrusted) { try await session.data(from: server.url()) }
                #expect(server.requests.isEmpty)
            }
        }
    }

    @Test func `cancelling the challenge cancels the task, even for a valid certificate`() async throws {
        for isTask in [false, true] {
            try await withJudge(.saying(.cancelAuthenticationChallenge), certificates.valid, isTask: isTask) {
                (server, session) async throws in
                let error = await expectFailure(.cancelled) { try await session.data(from: server.url()) }
                #expect(error?.failingURL == server.url())
                #expect(server.requests.isEmpty)
                try await server.waitForAllClosed()
            }
        }
    }

    @Test func `rejecting the protection space fails the task, even for a valid certificate`() async throws {
        for isTask in [false, true] {
            try await withJudge(.saying(.rejectProtectionSpace), certificates.valid, isTask: isTask) {
                (server, session) async throws in
                await expectFailure(.serverCertificateUntrusted) { try await session.data(from: server.url()) }
                #expect(server.requests.isEmpty)
                try await server.waitForAllClosed()
            }
        }
    }

    @Test func `a refusal applies to one connection, and the next one asks again`() async throws {
        let count = Watched(0)
        let judge = Judge { question in
            let number = count.change { count in
                count += 1
                return count
            }
            number == 1 ? question.answer(.cancelAuthenticationChallenge, nil) : question.trust()
        }
        try await withJudge(judge, certificates.selfSigned) { (server, session) async throws in
            await expectFailure(.cancelled) { try await session.data(from: server.url()) }
            #expect(try await session.text(server.url()) == "secret")
            #expect(judge.all.count == 2)
        }
    }

    @Test func `completion handlers receive the errors too`() async throws {
        let rows: [(URLSession.AuthChallengeDisposition, URLError.Code)] = [
            (.cancelAuthenticationChallenge, .cancelled), (.rejectProtectionSpace, .serverCertificateUntrusted),
            (.performDefaultHandling, .serverCertificateUntrusted),
        ]
        for (disposition, code) in rows {
            try await withJudge(.saying(disposition), certificates.selfSigned) { (server, session) async throws in
                let outcome = Delivered<URLError?>()
                session.dataTask(with: server.url()) { data, response, error in
                    #expect(data == nil && response == nil)
                    outcome(error as? URLError)
                }.resume()
                #expect(try await outcome.value?.code == code)
            }
        }
    }

    @Test func `a trust credential for one server does not apply to another`() async throws {
        // Every challenge is answered with the credential of the first one.
        let first = Watched<URLCredential?>(nil)
        let judge = Judge { question in
            let credential = first.change { first in
                first = first ?? question.space.serverTrust.map { URLCredential(trust: $0) }
                return first
            }
            question.answer(question.space.host == "127.0.0.1" ? .useCredential : .performDefaultHandling, credential)
        }
        try await withJudge(judge, certificates.selfSigned) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "secret")
            await expectFailure(.serverCertificateUntrusted) { try await session.data(from: server.url("/", host: "localhost")) }
        }
    }
}
