// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Authentication at a real squid, for http and for tunnels.
@Suite(.timeLimit(.minutes(1)))
struct SquidAuthenticationTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func withSquid(
        _ schemes: [SquidServer.Scheme], _ interview: Interview?, test: (SquidServer, [URL], URLSession) async throws -> Void
    ) async throws {
        let squid = try SquidServer.start(schemes)
        defer { squid.stop() }
        let clear = try await ScriptedServer.start(reply: { .ok("clear \($0.proxyAuthorization ?? "")\($0.bodyText)") })
        let secure = try await ScriptedServer.start(
            identity: certificates.valid, reply: { .ok("secure \($0.proxyAuthorization ?? "")\($0.bodyText)") })
        try await withSession(delegate: interview.map { Interviewer($0) }) {
            $0.tlsTrustRoots = [certificates.root]
            $0.connectionProxyDictionary = proxyDictionary(http: squid.port, https: squid.port)
        } test: { (session) async throws in
            try await test(squid, [clear.url("/x"), secure.url("/x"), secure.url("/y", host: "localhost")], session)
        }
        try await clear.close()
        try await secure.close()
    }

    @Test func `two proxies share no memory segments, and leave none behind`() async throws {
        let proxies = [try SquidServer.start(), try SquidServer.start()]
        let segments = proxies.map(\.sharedMemory)
        #expect(segments.allSatisfy { !$0.isEmpty } && Set(segments[0]).isDisjoint(with: segments[1]))
        for proxy in proxies { proxy.stop() }
        #expect(proxies.allSatisfy { $0.sharedMemory.isEmpty })
    }

    @Test func `an open proxy serves http and https`() async throws {
        try await withSquid([], nil) { (squid, urls, session) async throws in
            #expect(try await session.text(urls[0]) == "clear ")
            #expect(try await session.text(urls[1]) == "secure ")
        }
    }

    @Test(arguments: [SquidServer.Scheme.basic, .digest, .ntlm])
    func `the right password is accepted for http and tunnels, with bodies`(scheme: SquidServer.Scheme) async throws {
        let interview = Interview(user: scheme == .ntlm ? "\(NTLMServer.domain)\\ada" : "ada", password: "lovelace")
        try await withSquid([scheme], interview) { (squid, urls, session) async throws in
            for _ in 0..<2 {
                #expect(try await session.text(urls[0]) == "clear ")
                #expect(try await session.text(urls[1]) == "secure ")
                // A second tunnel.
                #expect(try await session.text(urls[2]) == "secure ")
                let post = URLRequest(urls[0], method: "POST", body: Data("body".utf8))
                #expect(try await session.text(post).text == "clear body")
            }
            #expect(
                interview.questions.allSatisfy { $0.isProxy && $0.port == squid.port && $0.status == 407 && $0.failures == 0 })
            #expect(interview.questions.allSatisfy { $0.by == (scheme == .ntlm ? "session" : "task") })
            // There is one protection space for http and one for https.
            #expect(interview.questions.count <= 2)
        }
    }

    @Test func `the strongest scheme that the app does not reject is used`() async throws {
        let interview = Interview { challenge, _ in
            challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodNTLM
                ? (.rejectProtectionSpace, nil) : (.useCredential, .ada())
        }
        try await withSquid([.basic, .digest, .ntlm], interview) { (squid, urls, session) async throws in
            #expect(try await session.text(urls[0]) == "clear ")
            #expect(try await session.text(urls[1]) == "secure ")
            #expect(interview.methods == ["NTLM", "HTTPDigest", "NTLM", "HTTPDigest"])
        }
    }

    @Test func `a wrong password delivers the 407, and fails a tunnel`() async throws {
        for scheme in [SquidServer.Scheme.basic, .digest, .ntlm] {
            let interview = Interview { challenge, _ in (.useCredential, challenge.previousFailureCount == 0 ? .wrong() : nil) }
            try await withSquid([scheme], interview) { (squid, urls, session) async throws in
                #expect(try await session.text(URLRequest(urls[0])).response.statusCode == 407)
                await expectFailure(.userAuthenticationRequired) { try await session.data(from: urls[1]) }
                #expect(interview.failures == [0, 1, 0, 1])
            }
        }
    }
}
