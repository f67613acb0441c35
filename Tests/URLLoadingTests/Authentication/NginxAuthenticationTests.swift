// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Basic against a real nginx.
@Suite(.timeLimit(.minutes(1)))
struct NginxAuthenticationTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func withNginx(_ interview: Interview?, test: (NginxServer, URLSession) async throws -> Void) async throws {
        let nginx = try NginxServer.start(certificates.valid)
        defer { nginx.stop() }
        try nginx.put("page of basic".utf8, at: "/basic/page.txt")
        try await withSession(delegate: interview.map { TaskInterviewer($0) }) {
            $0.tlsTrustRoots = [certificates.root]
        } test: { (session) async throws in
            try await test(nginx, session)
        }
    }

    @Test(arguments: [false, true]) func `the right password is accepted, with one challenge`(isSecure: Bool) async throws {
        let interview = Interview(.ada())
        try await withNginx(interview) { (nginx, session) async throws in
            for _ in 0..<3 {
                #expect(try await session.text(nginx.url("/basic/page.txt", secure: isSecure)) == "page of basic")
            }
            let content = ScriptedFile.pattern(200_000)
            let put = URLRequest(nginx.url("/basic/new.bin", secure: isSecure), method: "PUT")
            let (_, response) = try await session.upload(for: put, from: Data(content))
            #expect((response as? HTTPURLResponse)?.statusCode == 201)
            #expect(try nginx.content(at: "/basic/new.bin") == content)
            #expect(interview.questions.map(\.realm) == ["tower"] && interview.methods == ["HTTPBasic"])
        }
    }

    @Test func `a wrong password is challenged again, and without a credential the 401 is delivered`() async throws {
        let interview = Interview { _, number in (.useCredential, number < 2 ? .wrong() : .ada()) }
        try await withNginx(interview) { (nginx, session) async throws in
            #expect(try await session.text(nginx.url("/basic/page.txt")) == "page of basic")
            #expect(interview.failures == [0, 1, 2])
        }
        try await withNginx(nil) { (nginx, session) async throws in
            let (text, response) = try await session.text(URLRequest(nginx.url("/basic/page.txt")))
            #expect(response.statusCode == 401 && text.contains("401 Authorization Required"))
        }
    }
}
