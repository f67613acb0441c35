// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Resumed uploads: what is sent to which origin, which resume data is accepted, and which uploads the server is asked to delete.
@Suite(.timeLimit(.minutes(2)))
struct ResumableUploadSafetyTests {
    private typealias Fault = UploadServer.Fault

    private static let content = Data(ScriptedFile.pattern(3_000_000, seed: 11))
    private static let secrets = ["secret", "YWRhOnNlY3JldA"]
    private static let version = ["Upload-Draft-Interop-Version", "8"]
    private static let challenge = ["WWW-Authenticate", "Basic realm=\"uploads\""]

    private static func expectNoSecrets(_ requests: [UploadServer.Request], sourceLocation: SourceLocation = #_sourceLocation) {
        for request in requests {
            for (name, value) in request.fields {
                #expect(!secrets.contains { value.contains($0) }, "\(request.method) \(name)", sourceLocation: sourceLocation)
                #expect(!["authorization", "cookie"].contains(name), "\(request.method)", sourceLocation: sourceLocation)
            }
            #expect(!request.target.contains("secret"), sourceLocation: sourceLocation)
        }
    }

    /// A server that has the first million bytes of an upload that another server announced.
    private static func other(faults: [Fault] = []) throws -> UploadServer {
        try UploadServer(
            UploadServer.Plan(
                faults: faults + [
                    Fault("HEAD", status: 204, fields: [version, ["Upload-Complete", "?0"], ["Upload-Offset", "1000000"]]),
                    Fault("PATCH", status: 200, fields: [version, ["Upload-Complete", "?1"]], body: "there"),
                ]))
    }

    private static func plan(_ faults: [Fault] = [Fault("POST", cut: 1_000_000)], location: String? = nil) -> UploadServer.Plan {
        var plan = UploadServer.Plan(faults: faults)
        plan.location = location
        return plan
    }

    // MARK: Origins

    @Test(arguments: ["request", "configuration", "storage", "url"])
    func `credentials and cookies of the first origin are not sent to an upload at another`(carrier: String) async throws {
        let other = try Self.other()
        let refusal = Fault("POST", status: 401, fields: [Self.challenge], refuses: true)
        let loss = Fault("POST", cut: 1_000_000)
        let server = try UploadServer(
            Self.plan(carrier == "url" ? [refusal, loss] : [loss], location: other.url("/uploads/1").absoluteString))
        var request = URLRequest(server.url(host: carrier == "url" ? "ada:secret@localhost" : "localhost"), method: "POST")
        let fields = ["Authorization": "Bearer secret", "Cookie": "taste=secret"]
        try await withSession {
            switch carrier {
            case "request":
                for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
                $0.httpShouldSetCookies = false
            case "configuration": $0.httpAdditionalHeaders = fields
            case "storage":
                let cookie = HTTPCookie(properties: [.name: "taste", .value: "secret", .domain: "localhost", .path: "/"])
                if let cookie { $0.httpCookieStorage?.setCookie(cookie) }
            default: break
            }
        } test: { session in
            let (data, _) = try await session.upload(for: request, from: Self.content)
            #expect(String(decoding: data, as: UTF8.self) == "there")
            let first = try await server.requests(carrier == "url" ? 2 : 1)
            #expect(
                first.last?.fields.values.contains { value in Self.secrets.contains { value.contains($0) } } == true,
                "it was not sent to its own origin")
            let requests = try await other.requests(2)
            #expect(requests.map(\.method) == ["HEAD", "PATCH"])
            #expect(requests.last?.received == 2_000_000)
            Self.expectNoSecrets(requests)
        }
    }

    @Test func `a challenge at another origin is not answered with the first origin's credentials`() async throws {
        let other = try Self.other(faults: [Fault("HEAD", status: 401, fields: [Self.challenge], refuses: true)])
        let refusal = Fault("POST", status: 401, fields: [Self.challenge], refuses: true)
        let server = try UploadServer(
            Self.plan([refusal, Fault("POST", cut: 1_000_000)], location: other.url("/uploads/1").absoluteString))
        let watcher = UploadWatcher(login: [server.port: URLCredential(user: "ada", password: "secret", persistence: .forSession)]
        )
        try await withSession(delegate: watcher) { session in
            let task = session.uploadTask(with: URLRequest(server.url(), method: "POST"), from: Self.content)
            task.resume()
            _ = try await watcher.end()
            #expect(watcher.challenges.read { $0 } == [server.port, other.port])
            Self.expectNoSecrets(other.requests)
        }
    }

    @Test func `deleting an upload at another origin sends no credentials of the first`() async throws {
        let other = try UploadServer(UploadServer.Plan(faults: [Fault("DELETE", status: 204)]))
        let server = try UploadServer(
            Self.plan([Fault("POST", holds: 1_000_000)], location: other.url("/uploads/1").absoluteString))
        var request = URLRequest(server.url(host: "localhost"), method: "POST")
        request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
        let watcher = UploadWatcher()
        try await withSession(delegate: watcher) { session in
            let task = session.uploadTask(with: request, from: Self.content)
            task.resume()
            try await watcher.announcement()
            _ = try await server.requests(1)
            task.cancel()
            let requests = try await other.requests(1)
            #expect(requests.map(\.method) == ["DELETE"])
            Self.expectNoSecrets(requests)
        }
    }

    @Test func `an upload over https does not continue over http`() async throws {
        let clear = try Self.other()
        let certificates = try TestCertificates.shared.get()
        let server = try UploadServer(Self.plan(location: clear.url("/uploads/1").absoluteString), identity: certificates.valid)
        try await withSession {
            $0.tlsTrustRoots = [certificates.root]
        } test: { session in
            let error = await #expect(throws: URLError.self) {
                try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Self.content)
            }
            if let data = error?.uploadTaskResumeData {
                await #expect(throws: URLError.self) { try await session.upload(resumeFrom: data) }
            }
            #expect(clear.requests.isEmpty)
        }
    }

    @Test func `an upload over https continues over https`() async throws {
        let certificates = try TestCertificates.shared.get()
        let server = try UploadServer(Self.plan(), identity: certificates.valid)
        try await withSession {
            $0.tlsTrustRoots = [certificates.root]
        } test: { session in
            _ = try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Self.content)
            #expect(try server.content() == Self.content)
        }
    }

    @Test func `user information in the upload's URL is not sent preemptively`() async throws {
        let server = try UploadServer(Self.plan(location: "http://ada:secret@127.0.0.1:{port}/uploads/1"))
        try await withSession { session in
            _ = try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Self.content)
            #expect(try server.content() == Self.content)
            Self.expectNoSecrets(try await server.requests(3))
        }
    }

    @Test(arguments: ["file:///etc/passwd", "ftp://127.0.0.1/uploads/1", "data:,x", "http://", "http://[::", "\u{1}"])
    func `an upload does not resume at a URL that cannot be requested`(location: String) async throws {
        let server = try UploadServer(Self.plan(location: location))
        try await withSession { session in
            let error = await #expect(throws: URLError.self) {
                try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Self.content)
            }
            #expect(error?.uploadTaskResumeData == nil)
            let methods = try await server.requests(1).map(\.method)
            #expect(methods == ["POST"])
        }
    }

    // MARK: Credentials

    @Test(arguments: ["POST", "HEAD", "PATCH"])
    func `a challenge at any request of the upload is answered, and later ones send credentials`(method: String) async throws {
        let server = try UploadServer(
            Self.plan([
                Fault(method, status: 401, fields: [Self.challenge], refuses: true), Fault("POST", cut: 1_000_000),
            ]))
        let watcher = UploadWatcher(login: [server.port: URLCredential(user: "ada", password: "secret", persistence: .forSession)]
        )
        try await withSession(delegate: watcher) { session in
            session.uploadTask(with: URLRequest(server.url(), method: "POST"), from: Self.content).resume()
            #expect(try await watcher.end() == nil)
            #expect(watcher.status.read { $0 } == 200)
            #expect(watcher.challenges.read { $0 } == [server.port])
            let requests = try await server.requests(4)
            let first = try #require(requests.firstIndex { $0.method == method })
            for (index, request) in requests.enumerated() {
                // The retried POST was interrupted before its response, so its credentials are not yet known to be valid.
                guard index <= first + 1 || method != "POST" else { continue }
                #expect((request.fields["authorization"] != nil) == (index > first), "\(request.method)")
            }
            #expect(try server.content() == Self.content)
        }
    }

    @Test func `an unanswered challenge to the request for the offset fails the task, and leaves resume data`()
        async throws
    {
        let server = try UploadServer(
            Self.plan([
                Fault("HEAD", status: 401, fields: [Self.challenge], refuses: true), Fault("POST", cut: 1_000_000),
            ]))
        let data = Watched<Data?>(nil)
        try await withSession { session in
            let error = await #expect(throws: URLError.self) {
                try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Self.content)
            }
            #expect(error?.code == .userAuthenticationRequired)
            data.change { $0 = error?.uploadTaskResumeData }
        }
        let resumeData = try #require(data.read { $0 })
        try await withSession { session in _ = try await session.upload(resumeFrom: resumeData) }
        #expect(try server.content() == Self.content)
        #expect(try await server.requests(4).map(\.method) == ["POST", "HEAD", "HEAD", "PATCH"])
    }

    // MARK: Resume data

    /// Uploads a million bytes of a file, and stops with resume data.
    private static func withResumeData(
        _ test: (_ server: UploadServer, _ data: Data, _ file: URL) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        let file = directory.file("body")
        try content.write(to: file)
        let server = try UploadServer(plan([Fault("POST", holds: 1_000_000)]))
        let watcher = UploadWatcher()
        let session = URLSession(configuration: .ephemeral, delegate: watcher, delegateQueue: nil)
        let task = session.uploadTask(with: URLRequest(server.url(), method: "POST"), fromFile: file)
        task.resume()
        try await watcher.announcement()
        _ = try await server.requests(1)
        let data = try #require(await task.cancelByProducingResumeData())
        session.invalidateAndCancel()
        try await test(server, data, file)
    }

    @Test(arguments: ["other bytes", "longer", "shorter", "another file", "no file", "a folder", "a link"])
    func `resume data is rejected if its file changed, and no byte is sent`(change: String) async throws {
        try await Self.withResumeData { server, data, file in
            let facts = try FileManager.default.attributesOfItem(atPath: file.path)
            let written = try #require(facts[.modificationDate] as? Date)
            let handle = try FileHandle(forUpdating: file)
            switch change {
            case "other bytes": try handle.write(contentsOf: Data([1, 2, 3]))
            case "longer":
                try handle.seekToEnd()
                try handle.write(contentsOf: Data([1]))
            case "shorter": try handle.truncate(atOffset: 2_000_000)
            case "another file":
                // The new file has the same bytes and the same modification date.
                try FileManager.default.moveItem(at: file, to: file.appendingPathExtension("old"))
                try Self.content.write(to: file)
                try FileManager.default.setAttributes([.modificationDate: written], ofItemAtPath: file.path)
            case "a folder":
                try FileManager.default.removeItem(at: file)
                try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
            case "a link":
                try FileManager.default.removeItem(at: file)
                try FileManager.default.createSymbolicLink(atPath: file.path, withDestinationPath: "/etc/passwd")
            default: try FileManager.default.removeItem(at: file)
            }
            try handle.close()
            try await withSession { session in
                await #expect(throws: URLError.self) { try await session.upload(resumeFrom: data) }
            }
            // The client may ask for the offset, but sends no byte.
            #expect(server.requests.dropFirst().allSatisfy { $0.method == "HEAD" })
            #expect(!server.isComplete())
        }
    }

    @Test func `invalid resume data fails the task`() async throws {
        try await Self.withResumeData { server, data, _ in
            let plist = try PropertyListSerialization.data(fromPropertyList: ["a": 1], format: .binary, options: 0)
            let foreign = try PropertyListSerialization.data(
                fromPropertyList: [
                    "NSURLSessionResumeInfoVersion": 2, "NSURLSessionDownloadURL": server.url().absoluteString,
                    "NSURLSessionResumeBytesReceived": 5,
                ] as [String: Any], format: .xml, options: 0)
            let damaged = [Data(), Data("garbage".utf8), data.dropLast(), data.prefix(data.count / 2), data.dropFirst()]
            for bad in damaged + [plist, foreign] {
                try await withSession { session in
                    let error = await #expect(throws: URLError.self) { try await session.upload(resumeFrom: bad) }
                    #expect(error?.code == .cannotOpenFile)
                }
            }
            let methods = try await server.requests(1).map(\.method)
            #expect(methods == ["POST"])
        }
    }

    /// Each value in turn is removed, or replaced by one of another type or range.
    @Test func `tampered resume data fails the task or continues the upload`() async throws {
        try await Self.withResumeData { server, data, _ in
            let plist = try PropertyListSerialization.propertyList(from: data, options: [], format: nil)
            let values = try #require(plist as? [String: Any])
            let others: [Any?] = [nil, -1, Int64.max, "", "x", Data([0]), Data(), [Any](), [String: Any](), Date.distantPast]
            for key in values.keys.sorted() {
                for other in others {
                    var changed = values
                    changed[key] = other
                    let forged = try PropertyListSerialization.data(fromPropertyList: changed, format: .binary, options: 0)
                    try await withSession { session in
                        do {
                            _ = try await session.upload(resumeFrom: forged)
                        } catch let error as URLError {
                            let codes: Set<URLError.Code> = [.cannotOpenFile, .badServerResponse, .fileDoesNotExist]
                            #expect(codes.contains(error.code), "\(key): \(error)")
                        }
                    }
                }
            }
            let (_, response) = try await URLSession(configuration: .ephemeral).upload(resumeFrom: data)
            #expect((response as? HTTPURLResponse).map { 200...204 ~= $0.statusCode } == true)
            #expect(try server.content() == Self.content)
        }
    }

    @Test(arguments: [true, false]) func `resume data outlives its session, and continues from a copy on disk`(
        isFile: Bool
    ) async throws {
        let directory = try TemporaryDirectory()
        let file = directory.file("body")
        try Self.content.write(to: file)
        let server = try UploadServer(Self.plan([Fault("POST", holds: 1_000_000)]))
        let watcher = UploadWatcher()
        let session = URLSession(configuration: .ephemeral, delegate: watcher, delegateQueue: nil)
        var request = URLRequest(server.url(), method: "POST")
        request.setValue("text/strange", forHTTPHeaderField: "X-Own")
        let task =
            isFile ? session.uploadTask(with: request, fromFile: file) : session.uploadTask(with: request, from: Self.content)
        task.resume()
        try await watcher.announcement()
        _ = try await server.requests(1)
        let kept = directory.file("kept")
        try #require(await task.cancelByProducingResumeData()).write(to: kept)
        session.invalidateAndCancel()
        try await withSession { session in
            let ends = Watched<[String]>([])
            let next = session.uploadTask(withResumeData: try Data(contentsOf: kept)) { data, response, error in
                let status = (response as? HTTPURLResponse)?.statusCode ?? 0
                ends.change { $0.append("\(status) \(String(decoding: data ?? Data(), as: UTF8.self)) \(error == nil)") }
            }
            #expect(next.originalRequest?.url == server.url())
            next.resume()
            #expect(try await ends.value { $0.first } == "200 stored 3000000 true")
            #expect(next.response?.url == server.url())
        }
        #expect(try server.content() == Self.content)
        let requests = try await server.requests(3)
        #expect(requests.map(\.method) == ["POST", "HEAD", "PATCH"])
        #expect(requests.map(\.received).reduce(0, +) == 3_000_000)
    }

    // MARK: Deleting uploads at the server

    @Test(arguments: ["cancel", "resume data", "invalidate", "before 104", "timeout", "complete"])
    func `only a cancelled upload is deleted at the server`(way: String) async throws {
        let fault = Fault("POST", mute: way == "before 104", holds: way == "complete" ? nil : 1_000_000)
        let server = try UploadServer(Self.plan([fault]))
        let watcher = UploadWatcher()
        try await withSession(delegate: watcher) {
            if way == "timeout" { $0.timeoutIntervalForRequest = 1 }
        } test: { session in
            let task = session.uploadTask(with: URLRequest(server.url(), method: "POST"), from: Self.content)
            task.resume()
            if way != "before 104" { try await watcher.announcement() }
            _ = try await server.requests(1)
            switch way {
            case "cancel", "before 104": task.cancel()
            case "resume data": _ = await task.cancelByProducingResumeData()
            case "invalidate": session.invalidateAndCancel()
            case "complete":
                _ = try await watcher.end()
                task.cancel()
            default: break
            }
            let error = try await watcher.end()
            #expect(error?.code == (way == "complete" ? nil : way == "timeout" ? .timedOut : .cancelled))
            if way != "resume data" { #expect((error?.uploadTaskResumeData != nil) == (way == "timeout")) }
        }
        let isForgotten = way == "cancel" || way == "invalidate"
        if isForgotten {
            _ = try await server.requests { $0.contains { $0.method == "DELETE" } }
        }
        // This load gives an unexpected DELETE time to arrive.
        try await withSession { session in _ = try await session.text(server.url("/later")) }
        let deletions = server.requests.filter { $0.method == "DELETE" }
        #expect(deletions.map(\.path) == (isForgotten ? ["/uploads/1"] : []))
    }
}
