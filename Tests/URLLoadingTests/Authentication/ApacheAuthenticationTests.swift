// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Basic and Digest against a real Apache httpd.
@Suite(.timeLimit(.minutes(1)))
struct ApacheAuthenticationTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func withApache(
        _ interview: Interview?, test: (ApacheServer, URLSession) async throws -> Void
    ) async throws {
        let apache = try ApacheServer.start(certificates)
        defer { apache.stop() }
        try await withSession(delegate: interview.map { TaskInterviewer($0) }) {
            $0.tlsTrustRoots = [certificates.root]
        } test: { (session) async throws in
            try await test(apache, session)
        }
    }

    @Test func `right passwords are accepted over http and https, with one challenge per protection space`() async throws {
        let interview = Interview(.ada())
        try await withApache(interview) { (apache, session) async throws in
            for access in [ApacheServer.Access.clear, .secure] {
                for place in ["basic", "digest", "digest/other", "int"] {
                    for _ in 0..<3 {
                        let (text, response) = try await session.text(URLRequest(apache.url("/\(place)/page.txt", access)))
                        #expect(text == "page of \(place)" && response.statusCode == 200)
                        #expect(response.value(forHTTPHeaderField: "X-User") == "ada")
                    }
                }
            }
            #expect(interview.failures.allSatisfy { $0 == 0 })
            // `/int/` is in the realm of `/digest/`.
            #expect(interview.questions.map(\.realm) == ["basic", "digest", "other", "basic", "digest", "other"])
            #expect(Set(interview.methods) == ["HTTPBasic", "HTTPDigest"])
        }
    }

    @Test func `a wrong password is challenged again, and without a credential the 401 is delivered`() async throws {
        for place in ["basic", "digest"] {
            let interview = Interview { _, number in (.useCredential, number < 2 ? .wrong() : number == 2 ? .ada() : nil) }
            try await withApache(interview) { (apache, session) async throws in
                #expect(try await session.text(apache.url("/\(place)/page.txt")) == "page of \(place)")
                #expect(interview.failures == [0, 1, 2])
            }
            try await withApache(nil) { (apache, session) async throws in
                let response = try await session.text(URLRequest(apache.url("/\(place)/page.txt"))).response
                #expect(response.statusCode == 401)
            }
        }
    }

    @Test func `bodies of data, files and streams arrive`() async throws {
        let directory = try TemporaryDirectory()
        let content = ScriptedFile.pattern(200_000)
        let file = try directory.write(content, to: "body")
        try await withApache(Interview(.ada())) { (apache, session) async throws in
            for place in ["basic", "digest"] {
                let post = URLRequest(apache.url("/\(place)/echo"), method: "POST", headers: ["Content-Type": "text/plain"])
                #expect(try await session.upload(for: post, from: Data(content)).0 == Data(content))
                #expect(try await session.upload(for: post, fromFile: file).0 == Data(content))
                let put = URLRequest(apache.url("/\(place)/new.txt"), method: "PUT")
                let (_, response) = try await session.upload(for: put, fromFile: file)
                #expect((response as? HTTPURLResponse)?.statusCode == 201)
                #expect(try apache.content(at: "/\(place)/new.txt") == content)
            }
        }
    }

    @Test func `many concurrent requests all authenticate with Digest`() async throws {
        let interview = Interview(.ada())
        try await withApache(interview) { (apache, session) async throws in
            let texts = try await withThrowingTaskGroup(of: String.self) { group in
                for number in 0..<40 { group.addTask { try await session.text(apache.url("/digest/page.txt?\(number)")) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(texts == Array(repeating: "page of digest", count: 40))
            #expect(interview.questions.count <= 6 && interview.failures.allSatisfy { $0 == 0 })
        }
    }
}
