// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// `requiresDNSSECValidation`, against a name server with a signed root in a separate network namespace.
@Suite(.enabled(if: geteuid() == 0), .timeLimit(.minutes(2))) struct DNSSECTests {
    @Test func `only signed names are connected to`() async throws { try await SignedZone.run("SignedNameTests") }

    @Test func `a task waits if no name server answers`() async throws {
        try await SignedZone.run("UnansweredNameTests", before: "pkill named")
    }

    @Test func `an error reports that libunbound is missing`() async throws {
        try await SignedZone.run(
            "MissingUnboundTests",
            before: "for file in $(ldconfig -p | awk '/libunbound.so.8/ {print $NF}'); do mount --bind /dev/null $file; done"
        )
    }

    @Test func `an error reports that the root key is missing`() async throws {
        try await SignedZone.run("MissingRootKeyTests", before: "mount -t tmpfs none /usr/share/dns")
    }
}

private func withServer(_ test: (ScriptedServer) async throws -> Void) async throws {
    let server = try await ScriptedServer.start(address: "0.0.0.0") { .ok($0.header("Host") ?? "") }
    do { try await test(server) } catch {
        try? await server.close()
        throw error
    }
    try await server.close()
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("SignedNameTests")), .timeLimit(.minutes(1))) struct SignedNameTests {
    private func request(_ server: ScriptedServer, _ host: String, validated: Bool = true) -> URLRequest {
        var request = URLRequest(url: server.url("/", host: host))
        request.requiresDNSSECValidation = validated
        return request
    }

    private func check(_ session: URLSession, _ server: ScriptedServer) async throws {
        for host in ["good.signed", "GOOD.signed.", "alias.signed", "127.0.0.1", "localhost"] {
            #expect(try await session.text(request(server, host)).response.statusCode == 200, "\(host)")
        }
        let connections = server.connectionCount
        for (host, reason) in [("bad.signed", "does not match its signature"), ("host.unsigned", "are not signed")] {
            let error = await expectFailure(.dnsLookupFailed, in: host) { try await session.text(request(server, host)) }
            #expect(error?.localizedDescription.contains(reason) == true, "\(error?.localizedDescription ?? "")")
        }
        await expectFailure(.cannotFindHost) { try await session.text(request(server, "none.signed")) }
        #expect(server.connectionCount == connections)
    }

    @Test func `a session that requires validation connects to signed names only`() async throws {
        try await withServer { (server) async throws in
            try await withSession {
                $0.requiresDNSSECValidation = true
            } test: { (session) async throws in
                let plain = await expectFailure(.dnsLookupFailed) {
                    try await session.text(request(server, "bad.signed", validated: false))
                }
                #expect(plain != nil)
                try await check(session, server)
            }
        }
    }

    @Test func `a request that requires validation shares neither lookups nor connections with others`() async throws {
        try await withServer { (server) async throws in
            try await withSession { (session) async throws in
                // These loads leave cached addresses and idle connections.
                for host in ["bad.signed", "host.unsigned", "good.signed"] {
                    _ = try await session.text(request(server, host, validated: false))
                }
                try await check(session, server)
            }
        }
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("UnansweredNameTests")), .timeLimit(.minutes(1))) struct UnansweredNameTests {
    @Test func `a task waits if no name server answers, or fails if it does not wait`() async throws {
        for waits in [true, false] {
            let recorder = WaitingRecorder()
            try await withSession(delegate: recorder) {
                $0.requiresDNSSECValidation = true
                $0.waitsForConnectivity = waits
            } test: { (session) async throws in
                let task = session.dataTask(with: try #require(URL(string: "http://good.signed/")))
                task.resume()
                if waits {
                    try await recorder.waitingTasks.count(reaches: 1)
                    task.cancel()
                }
                let error = try await recorder.ended.value as? URLError
                #expect(error?.code == (waits ? .cancelled : .notConnectedToInternet), "\(String(describing: error))")
            }
        }
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("MissingUnboundTests")), .timeLimit(.minutes(1))) struct MissingUnboundTests {
    @Test func `a missing libunbound fails the lookup`() async throws { try await expectMissing("libunbound is not installed") }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("MissingRootKeyTests")), .timeLimit(.minutes(1))) struct MissingRootKeyTests {
    @Test func `a missing root key fails the lookup`() async throws { try await expectMissing("the DNSSEC root key") }
}

private func expectMissing(_ reason: String) async throws {
    try await withServer { (server) async throws in
        try await withSession {
            $0.requiresDNSSECValidation = true
        } test: { (session) async throws in
            let error = await expectFailure(.dnsLookupFailed) { try await session.text(server.url("/", host: "good.signed")) }
            #expect(error?.localizedDescription.contains(reason) == true, "\(error?.localizedDescription ?? "")")
            #expect(try await session.text(server.url("/", host: "localhost")) == "localhost:\(server.port)")
        }
    }
}
