// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A resumed download does not deliver earlier bytes that the resuming load would have rejected.
@Suite(.timeLimit(.minutes(1)))
struct ResumeTrustTests {
    private static let cut = 200_000
    /// Two versions of a file, with the same length and entity tag.
    private static let (earlier, later) = (
        ScriptedFile(ScriptedFile.pattern(600_000, seed: 1)), ScriptedFile(ScriptedFile.pattern(600_000, seed: 2))
    )
    private static let rest = "bytes=\(cut)-"
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// The session of a download, and the server's identity.
    private struct Party {
        var name: String
        var identity: TestCertificates.Identity
        var delegate: (any URLSessionDelegate)?
        var configure: (URLSessionConfiguration) -> Void

        init(
            _ name: String, _ identity: TestCertificates.Identity, _ delegate: (any URLSessionDelegate)? = nil,
            roots: [Data] = [],
            _ configure: @escaping (URLSessionConfiguration) -> Void = { _ in }
        ) {
            self.name = name
            self.identity = identity
            self.delegate = delegate
            self.configure = {
                $0.tlsTrustRoots = roots
                configure($0)
            }
        }
    }

    private func lost(_ url: URL, _ request: URLRequest? = nil, in session: URLSession) async throws -> Data {
        let error = await expectFailure(.networkConnectionLost) {
            try await session.download(for: request ?? URLRequest(url: url))
        }
        return try #require(error?.downloadTaskResumeData)
    }

    private func resumed(_ data: Data, in session: URLSession) async throws -> Data {
        let (location, _) = try await session.download(resumeFrom: data)
        defer { try? FileManager.default.removeItem(at: location) }
        return try Data(contentsOf: location)
    }

    /// Interrupts a download in one session, and resumes it in another one after the server's file has changed.
    private func check(_ first: Party, _ second: Party, clientRoot: String? = nil, continues: Bool) async throws {
        let row = "\(first.name), then \(second.name)"
        let server = try await ScriptedServer.start(
            identity: first.identity, laterIdentities: [second.identity], clientRoot: clientRoot
        ) {
            $0.order == 0 ? Self.earlier.reply(to: $0, cutAfter: Self.cut) : Self.later.reply(to: $0)
        }
        defer { Task { try await server.close() } }
        var resumeData = Data()
        try await withSession(delegate: first.delegate, first.configure) { session in
            resumeData = try await lost(server.url("/", host: "localhost"), in: session)
        }
        var bytes = Data()
        try await withSession(delegate: second.delegate, second.configure) { session in
            bytes = try await resumed(resumeData, in: session)
        }
        let kept = continues ? Self.earlier.content.prefix(Self.cut) : Self.later.content.prefix(Self.cut)
        #expect(bytes == Data(kept + Self.later.content.dropFirst(Self.cut)), "\(row)")
        #expect(server.requests.map { $0.header("Range") } == [nil, Self.rest] + (continues ? [] : [nil]), "\(row)")
    }

    // MARK: Connections

    @Test func `a download is resumed if the server is trusted in the same way, and starts over otherwise`() async throws {
        let (roots, stranger) = ([certificates.root], [Data(certificates.unknownAuthority.chain[1])])
        func party(_ name: String, _ identity: TestCertificates.Identity, roots: [Data] = []) -> Party {
            Party(name, identity, roots.isEmpty ? SessionJudge(.trusting) : nil, roots: roots)
        }
        let rooted = party("roots", certificates.valid, roots: roots)
        let rows: [(Party, Party, continues: Bool)] = [
            (party("a delegate", certificates.selfSigned), rooted, false),
            (party("a delegate", certificates.selfSigned), party("a delegate", certificates.selfSigned), true),
            (
                party("a delegate", certificates.selfSigned), party("a delegate, another key", certificates.unknownAuthority),
                false
            ),
            (rooted, party("a delegate", certificates.selfSigned), false),
            (party("other roots", certificates.unknownAuthority, roots: stranger), rooted, false),
            (rooted, party("the same roots, another key", certificates.nameConstraintSatisfied, roots: roots), true),
            (rooted, party("more roots", certificates.valid, roots: roots + stranger), false),
        ]
        for (first, second, continues) in rows { try await check(first, second, continues: continues) }
    }

    @Test func `a download with a client certificate is only resumed with the same certificate`() async throws {
        let identity = try SecIdentity(pem: Data(certificates.client.chainPEM.utf8), key: Data(certificates.client.keyPEM.utf8))
        let roots = [certificates.root]
        let known = Party("a certificate", certificates.valid, SessionJudge(.showing(identity)), roots: roots)
        let unknown = Party("none", certificates.valid, roots: roots)
        for (first, second, continues) in [(known, unknown, false), (unknown, known, false), (known, known, true)] {
            try await check(first, second, clientRoot: certificates.rootPEM, continues: continues)
        }
    }

    @Test func `a session's TLS requirements apply to the bytes of a resumed download`() async throws {
        let (valid, other, roots) = (certificates.valid, certificates.nameConstraintSatisfied, [certificates.root])
        func pinned(_ identity: TestCertificates.Identity) throws -> Party {
            let certificate = try #require(SecCertificateCreateWithData(nil, Data(identity.chain[0]) as CFData))
            let hash = try #require(PinningSamples.publicKeyHash(of: certificate))
            return Party("pinned", identity, roots: roots) {
                $0.appTransportSecurity = [
                    "NSPinnedDomains": ["localhost": ["NSPinnedLeafIdentities": [["SPKI-SHA256-BASE64": hash]]]]
                ]
            }
        }
        let plain = Party("plain", valid, roots: roots)
        let old = Party("TLS 1.2", valid, roots: roots) { $0.tlsMaximumSupportedProtocolVersion = .TLSv12 }
        let new = Party("TLS 1.3", valid, roots: roots) { $0.tlsMinimumSupportedProtocolVersion = .TLSv13 }
        let rows: [(Party, Party, continues: Bool)] = [
            (plain, try pinned(other), false), (plain, try pinned(valid), true), (try pinned(valid), plain, true),
            (old, new, false), (old, plain, true), (plain, new, true),
        ]
        for (first, second, continues) in rows { try await check(first, second, continues: continues) }
    }

    @Test func `a download from the substitute of one session is not resumed from that of another`() async throws {
        try await withScriptedServer(reply: { Self.earlier.reply(to: $0, cutAfter: Self.cut) }) { (first) async throws in
            try await withScriptedServer(reply: { Self.later.reply(to: $0) }) { (second) async throws in
                func lead(_ port: Int) -> (URLSessionConfiguration) -> Void {
                    {
                        $0.connectionOptions.substitutions = [
                            .init(of: .init(host: "localhost", port: nil), with: .init(host: nil, port: port))
                        ]
                    }
                }
                var data = Data()
                try await withSession(lead(first.port)) {
                    data = try await lost(first.url("/", host: "localhost"), in: $0)
                }
                try await withSession(lead(second.port)) { (session) async throws in
                    #expect(try await resumed(data, in: session) == Data(Self.later.content))
                }
                #expect(second.requests.map { $0.header("Range") } == [Self.rest, nil])
            }
        }
    }

    @Test func `redirecting servers must be trusted in the same way, too`() async throws {
        let file = try await ScriptedServer.start {
            $0.order == 0 ? Self.earlier.reply(to: $0, cutAfter: Self.cut) : Self.later.reply(to: $0)
        }
        defer { Task { try await file.close() } }
        let place = file.url("/file").absoluteString
        let start = try await ScriptedServer.start(
            identity: certificates.selfSigned, laterIdentities: [certificates.valid]
        ) { _ in .redirect(302, to: place) }
        defer { Task { try await start.close() } }
        var data = Data()
        try await withSession(delegate: SessionJudge(.trusting)) {
            data = try await lost(start.url("/", host: "localhost"), in: $0)
        }
        try await withSession {
            $0.tlsTrustRoots = [certificates.root]
        } test: { (session) async throws in
            #expect(try await resumed(data, in: session) == Data(Self.later.content))
        }
        #expect(file.requests.map { $0.header("Range") } == [nil, Self.rest, nil])
    }

    // MARK: Credentials

    private static func basic(_ user: String) -> String { "Basic " + Data("\(user):word".utf8).base64EncodedString() }

    /// Replies with a separate file for each user; Ali's whole file is cut off, but a requested range of it is complete.
    private static func serve(_ request: RecordedRequest) -> ScriptedReply {
        switch request.header("Authorization") {
        case basic("ali"): earlier.reply(to: request, cutAfter: request.header("Range") == nil ? cut : nil)
        case basic("bob"): later.reply(to: request)
        default: .status(401, [("WWW-Authenticate", "Basic realm=\"r\"")], body: "who?")
        }
    }

    @Test func `a download of one user is not resumed for another user`() async throws {
        enum Way { case session, challenge }
        let rows: [((user: String, way: Way), (user: String, way: Way))] = [
            (("ali", .session), ("bob", .session)), (("ali", .session), ("ali", .session)),
            (("ali", .challenge), ("bob", .challenge)), (("ali", .challenge), ("ali", .challenge)),
            (("ali", .session), ("bob", .challenge)), (("ali", .challenge), ("ali", .session)),
        ]
        for (first, second) in rows {
            let row = "\(first), then \(second)"
            let server = try await ScriptedServer.start { Self.serve($0) }
            defer { Task { try await server.close() } }
            func with(_ party: (user: String, way: Way), _ test: (URLSession) async throws -> Void) async throws {
                let delegate: (any URLSessionDelegate)? =
                    party.way == .challenge ? TaskInterviewer(Interview(user: party.user, password: "word")) : nil
                try await withSession(delegate: delegate) {
                    if party.way == .session { $0.httpAdditionalHeaders = ["Authorization": Self.basic(party.user)] }
                } test: {
                    try await test($0)
                }
            }
            var data = Data()
            try await with(first) { data = try await lost(server.url(), in: $0) }
            let text = try #require(String(data: data, encoding: .utf8))
            #expect(!text.contains(Self.basic("ali")) && !text.contains("word"))
            try await with(second) { (session) async throws in
                let content = second.user == "ali" ? Self.earlier.content : Self.later.content
                #expect(try await resumed(data, in: session) == Data(content), "\(row)")
            }
            #expect(server.requests.last?.header("Range") == (second.user == "ali" ? Self.rest : nil), "\(row)")
        }
    }

    @Test func `a download is resumed with the credential of its request, not with that of the session`() async throws {
        try await withScriptedServer(reply: { Self.serve($0) }) { (server) async throws in
            let request = URLRequest(server.url(), headers: ["Authorization": Self.basic("ali")])
            for (isWhole, content) in [(true, Self.earlier.content), (false, Self.later.content)] {
                var data = Data()
                try await withSession { data = try await lost(server.url(), request, in: $0) }
                if !isWhole { data = try #require(URLSessionDownloadTask.resumeDataWithoutHeaderFields(data)) }
                try await withSession {
                    $0.httpAdditionalHeaders = ["Authorization": Self.basic("bob")]
                } test: { (session) async throws in
                    #expect(try await resumed(data, in: session) == Data(content))
                }
            }
            #expect(server.requests.map { $0.header("Range") } == [nil, Self.rest, nil, Self.rest, nil])
        }
    }

    // MARK: Stores

    @Test func `a download that was joined with a stored part starts over`() async throws {
        let (content, stored, taken) = (ScriptedFile.pattern(100_000), 40_000, 30_000)
        let fields = Fields.fresh + [("ETag", "\"v1\"")]
        @Sendable func reply(_ request: RecordedRequest) -> ScriptedReply {
            switch request.header("Range") {
            case "bytes=0-\(stored - 1)":
                return .status(
                    206, fields + [("Content-Range", "bytes 0-\(stored - 1)/\(content.count)")], body: Array(content[..<stored]))
            case "bytes=\(stored)-":
                let head = ScriptedReply.head(
                    206,
                    fields + [
                        ("Content-Range", "bytes \(stored)-\(content.count - 1)/\(content.count)"),
                        ("Content-Length", "\(content.count - stored)"),
                    ])
                return [.write(head), .write(Array(content[stored..<stored + taken])), .close]
            default: return .ok(content, fields)
            }
        }
        var answers = EventRecorder.Answers()
        answers.response = { task, _ in
            task.originalRequest?.value(forHTTPHeaderField: "X-Turn") == nil ? .allow : .becomeDownload
        }
        let recorder = EventRecorder(answers)
        try await withCachedScenario(delegate: recorder, reply: { reply($0) }) { (server, session, _) async throws in
            _ = try await session.data(for: URLRequest(server.url(), headers: ["Range": "bytes=0-\(stored - 1)"]))
            let task = session.dataTask(with: URLRequest(server.url(), headers: ["X-Turn": "1"]))
            task.resume()
            let error = try #require(try await recorder.completion(of: task).error as? URLError)
            let data = try #require(error.downloadTaskResumeData)
            #expect(try await resumed(data, in: session) == Data(content))
            #expect(server.requests.map { $0.header("Range") } == ["bytes=0-\(stored - 1)", "bytes=\(stored)-", nil])
        }
    }
}
