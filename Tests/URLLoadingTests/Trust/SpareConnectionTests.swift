// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Connections that are being made when the load that asked for them no longer needs them.
@Suite(.timeLimit(.minutes(1)))
struct SpareConnectionTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// Trusts every server, but never answers the question with this number; the first question has number 0.
    private func judge(silentAbout silent: Int) -> Judge {
        let asked = Watched(0)
        return Judge { question in
            let number = asked.change { asked in
                asked += 1
                return asked - 1
            }
            if number != silent { question.trust() }
        }
    }

    @Test func `loads use other connections while a challenge is unanswered`() async throws {
        for usesTaskMethod in [false, true] {
            let judge = judge(silentAbout: 1)
            try await withScenario(
                identity: certificates.valid, delegate: usesTaskMethod ? TaskJudge(judge) : SessionJudge(judge),
                configure: { $0.tlsTrustRoots = [certificates.root] },
                reply: { request in ScriptedReply([.gate(request.path)] + ScriptedReply.ok(request.path).effects) }
            ) { (server, session) async throws in
                let texts = Delivered<String>()
                func start(_ path: String) {
                    session.dataTask(with: server.url(path)) { data, _, error in
                        texts(data.map { String(decoding: $0, as: UTF8.self) } ?? "\(String(describing: error))")
                    }.resume()
                }
                start("/first")
                try await server.reached("/first")
                start("/second")
                let unanswered = try await judge.question(1)
                server.open("/first")
                try await server.reached("/second")
                start("/third")
                try await server.reached("/third")
                // This answer comes too late.
                unanswered.answer(.cancelAuthenticationChallenge, nil)
                server.open("/second")
                server.open("/third")
                try await texts.count(reaches: 3)
                #expect(texts.all.sorted() == ["/first", "/second", "/third"])
                #expect(server.requests.map(\.connection) == [0, 0, 2])
                #expect(judge.all.count == 3)
            }
        }
    }
}
