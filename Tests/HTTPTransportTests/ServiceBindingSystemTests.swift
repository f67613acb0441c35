// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPTransport
import HTTPWire
import LoadingEngine
import LoadingModel
import LoadingTestKit
import Testing

/// HTTPS records from the system's name servers, in network namespaces of their own.
@Suite(.enabled(if: geteuid() == 0), .timeLimit(.minutes(2))) struct ServiceBindingSystemTests {
    @Test func `the system's name servers are asked`() async throws {
        let folder = try TemporaryDirectory()
        let script = """
            ip link set lo up && cd '\(folder.path)' && printf 'search corp.test\\nnameserver 127.0.0.1\\n' > resolv.conf \
            && printf '127.0.0.1 localhost listed.test\\n' > hosts && mount --bind resolv.conf /etc/resolv.conf \
            && mount --bind hosts /etc/hosts && exec "$@"
            """
        try await SeparateProcess.run(
            "SystemServiceTests", environment: [:],
            wrapper: ["/usr/bin/env", "unshare", "-n", "-m", "/bin/sh", "-c", script, "sh"])
    }

    @Test func `only signed records count if the session requires DNSSEC`() async throws {
        try await SignedZone.run("SignedServiceTests")
    }

    @Test func `without libunbound, a session that requires DNSSEC does not ask`() async throws {
        try await SignedZone.run(
            "UncheckedServiceTests",
            before: "for file in $(ldconfig -p | awk '/libunbound.so.8/ {print $NF}'); do mount --bind /dev/null $file; done")
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("SystemServiceTests")), .timeLimit(.minutes(1))) struct SystemServiceTests {
    @Test func `hosts that the system's name servers know are found, others are not asked for`() async throws {
        let names = try await ScriptedNameServer.start(port: 53) { question, _ in
            switch question.name {
            case "a.test": .records([ServiceRecord.https(1, "", [ServiceRecord.alpn("h3")])])
            case "long.test":
                .records(
                    (1...60).map { ServiceRecord.https($0, "n\($0).a-host-with-a-long-name.test", [ServiceRecord.alpn("h3")]) })
            case "fails.test": .code(2)
            default: .code(3)
            }
        }
        let lookups = ServiceBindingSources.lookups(SessionPolicy())
        #expect(try await lookups.places("a.test")?.get() == [HTTPSEndpoint(host: "a.test", port: 443)])
        // The answer is truncated, and asked for again over TCP.
        #expect(try await lookups.places("long.test")?.get().count == 8)
        #expect(await lookups.places("fails.test")?.fault?.kind == .dnsLookupFailed)
        for host in ["none.test", "listed.test"] { #expect(try await lookups.places(host)?.get() == []) }
        for host in ["localhost", "host", "127.0.0.1"] { #expect(await lookups.places(host) == nil) }
        #expect(Set(names.servicesAsked) == ["a.test", "long.test", "fails.test", "none.test"])
        await names.close()
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("SignedServiceTests")), .timeLimit(.minutes(1))) struct SignedServiceTests {
    @Test func `signed records are used, others are not`() async throws {
        var policy = SessionPolicy()
        let plain = ServiceBindingSources.lookups(policy)
        policy.needs.requiresDNSSEC = true
        let validated = ServiceBindingSources.lookups(policy)
        for lookups in [plain, validated] {
            for host in ["good.signed", "alias.signed"] {
                #expect(try await lookups.places(host)?.get() == [HTTPSEndpoint(host: "good.signed", port: 443)])
            }
        }
        #expect(try await plain.places("bad.signed")?.get() == [HTTPSEndpoint(host: "bad.signed", port: 445)])
        #expect(await validated.places("bad.signed")?.fault?.kind == .dnsLookupFailed)
        #expect(try await plain.places("host.unsigned")?.get() == [HTTPSEndpoint(host: "host.unsigned", port: 443)])
        #expect(try await validated.places("host.unsigned")?.get() == [])
        #expect(try await validated.places("none.signed")?.get() == [])
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("UncheckedServiceTests")), .timeLimit(.minutes(1)))
struct UncheckedServiceTests {
    @Test func `nothing is asked`() async {
        var policy = SessionPolicy()
        policy.needs.requiresDNSSEC = true
        #expect(await ServiceBindingSources.lookups(policy).places("good.signed") == nil)
    }
}
