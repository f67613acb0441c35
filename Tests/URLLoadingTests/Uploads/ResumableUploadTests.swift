// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Uploads to a server that supports resuming them (draft-ietf-httpbis-resumable-upload).
@Suite(.timeLimit(.minutes(2)))
struct ResumableUploadTests {
    private typealias Fault = UploadServer.Fault

    private static let content = Data(ScriptedFile.pattern(3_000_000, seed: 7))

    private static func session(_ change: (URLSessionConfiguration) -> Void = { _ in }) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        change(configuration)
        return URLSession(configuration: configuration)
    }

    private static func request(_ server: UploadServer, _ method: String = "POST") -> URLRequest {
        var request = URLRequest(url: server.url())
        request.httpMethod = method
        request.setValue("application/x-thing", forHTTPHeaderField: "Content-Type")
        return request
    }

    private static func methods(_ requests: [UploadServer.Request]) -> [String] { requests.map(\.method) }

    @Test(arguments: [3, 5, 6, 8, nil]) func `an upload that loses its connection continues at the server's offset`(
        version: Int?
    ) async throws {
        let server = try UploadServer(UploadServer.Plan(version: version, faults: [Fault("POST", cut: 1_000_000)]))
        let (data, response) = try await Self.session().upload(for: Self.request(server), from: Self.content)
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        #expect(response.url == server.url())
        #expect(String(decoding: data, as: UTF8.self) == "stored 3000000")
        #expect(try server.content() == Self.content)
        #expect(server.isComplete())
        let refused = version == nil || version == 8 ? 0 : 1
        let requests = Array(try await server.requests(3 + refused).dropFirst(refused))
        #expect(Self.methods(requests) == ["POST", "HEAD", "PATCH"])
        #expect(requests.last?.fields["upload-offset"] == "1000000")
        #expect(requests.last?.received == 2_000_000)
        let complete = version == 3 ? ("upload-incomplete", "?0") : ("upload-complete", "?1")
        #expect(requests.last?.fields[complete.0] == complete.1)
        let type = version == 3 || version == 5 ? nil : "application/partial-upload"
        #expect(requests.last?.fields["content-type"] == type)
    }

    @Test func `a server that refuses a version and stops reading gets the upload on another connection`() async throws {
        let refusal = ScriptedReply.head(400, [("Upload-Draft-Interop-Version", "6"), ("Content-Length", "0")])
        try await withScenario(
            early: { $0.header("Upload-Draft-Interop-Version") == "8" ? [.stopReading, .write(refusal)] : nil },
            reply: { .ok("stored \($0.bodyLength)") }
        ) { (server, session) async throws in
            // The refusal arrives after the whole body was sent. The second upload begins on the connection on which the first one ended.
            for length in [1000, 2000] {
                let (data, _) = try await session.upload(for: URLRequest(server.url(), method: "PUT"), from: Data(count: length))
                #expect(String(decoding: data, as: UTF8.self) == "stored \(length)")
            }
            #expect(server.connectionCount == 3)
        }
    }

    @Test func `an uninterrupted upload is one request`() async throws {
        let server = try UploadServer(UploadServer.Plan())
        let (data, _) = try await Self.session().upload(for: Self.request(server), from: Self.content)
        #expect(String(decoding: data, as: UTF8.self) == "stored 3000000")
        let requests = try await server.requests(1)
        #expect(Self.methods(requests) == ["POST"])
        #expect(requests.first?.fields["upload-complete"] == "?1")
        #expect(requests.first?.fields["upload-length"] == "3000000")
        #expect(requests.first?.fields["content-type"] == "application/x-thing")
    }

    @Test func `a server without support gets a plain upload, and losing the connection fails it`() async throws {
        var plan = UploadServer.Plan(faults: [Fault("POST", cut: 1_000_000)])
        plan.knowsUploads = false
        let server = try UploadServer(plan)
        let error = await #expect(throws: URLError.self) {
            try await Self.session().upload(for: Self.request(server), from: Self.content)
        }
        #expect(error?.code == .networkConnectionLost)
        #expect(error?.uploadTaskResumeData == nil)
        let (data, _) = try await Self.session().upload(for: Self.request(server), from: Self.content)
        #expect(String(decoding: data, as: UTF8.self) == "stored 3000000")
        #expect(Self.methods(try await server.requests(2)) == ["POST", "POST"])
    }

    @Test func `a data task does not offer to resume, nor does a session that disabled it`() async throws {
        let server = try UploadServer(UploadServer.Plan())
        var request = Self.request(server)
        let quiet = Self.session { $0.usesResumableUploads = false }
        _ = try await quiet.upload(for: request, from: Data("abc".utf8))
        request.httpBody = Data("abc".utf8)
        _ = try await Self.session().data(for: request)
        let requests = try await server.requests(2)
        #expect(requests.count == 2)
        for request in requests { #expect(request.fields.keys.contains { $0.hasPrefix("upload-") } == false) }
    }

    @Test func `a file upload continues after several lost connections`() async throws {
        let directory = try TemporaryDirectory()
        let file = directory.file("body")
        try Self.content.write(to: file)
        let server = try UploadServer(
            UploadServer.Plan(faults: [
                Fault("PUT", cut: 500_000, loses: 100_000), Fault("PATCH", cut: 700_000), Fault("PATCH", cut: 700_000, loses: 1),
                Fault("HEAD", silent: true),
            ]))
        let (_, response) = try await Self.session().upload(for: Self.request(server, "PUT"), fromFile: file)
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        #expect(try server.content() == Self.content)
    }

    @Test func `a cancelled upload leaves resume data that another session can use`() async throws {
        let directory = try TemporaryDirectory()
        let file = directory.file("body")
        try Self.content.write(to: file)
        var plan = UploadServer.Plan(faults: [Fault("POST", holds: 1_000_000)])
        plan.progressStep = 100_000
        let server = try UploadServer(plan)
        let recorder = ProgressRecorder()
        let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
        let task = session.uploadTask(with: Self.request(server), fromFile: file)
        recorder.atFirst104 = { task.suspend() }
        task.resume()
        _ = try await recorder.first.value { $0 }
        let data = try #require(await task.cancelByProducingResumeData())
        #expect((task.error as? URLError)?.code == .cancelled)
        let (body, response) = try await Self.session().upload(resumeFrom: data)
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        #expect(String(decoding: body, as: UTF8.self) == "stored 3000000")
        #expect(try server.content() == Self.content)
        #expect(Self.methods(server.requests).contains("DELETE") == false)
    }

    @Test func `a cancelled upload without resume data is deleted at the server`() async throws {
        let server = try UploadServer(UploadServer.Plan(faults: [Fault("POST", holds: 1_000_000)]))
        let recorder = ProgressRecorder()
        let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
        let task = session.uploadTask(with: Self.request(server), from: Self.content)
        recorder.atFirst104 = { task.cancel() }
        task.resume()
        _ = try await recorder.first.value { $0 }
        let requests = try await server.requests { requests in requests.contains { $0.method == "DELETE" } }
        #expect(Self.methods(requests).contains("DELETE"))
    }

    @Test func `a limit per request splits the upload into several`() async throws {
        var plan = UploadServer.Plan(faults: [Fault("POST", holds: 4_000_000)])
        plan.limits = "max-append-size=5000000"
        let server = try UploadServer(plan)
        // Larger than the socket buffers of both ends.
        let content = Data(ScriptedFile.pattern(24_000_000, seed: 9))
        let (data, _) = try await Self.session().upload(for: Self.request(server), from: content)
        #expect(String(decoding: data, as: UTF8.self) == "stored 24000000")
        #expect(try server.content() == content)
        let parts = server.requests.filter { $0.method == "PATCH" }
        #expect(parts.allSatisfy { $0.received <= 5_000_000 })
        #expect(parts.last?.fields["upload-complete"] == "?1")
    }

    @Test func `an upload that is too large for the server fails, and is deleted`() async throws {
        var plan = UploadServer.Plan()
        plan.limits = "max-size=1000"
        let server = try UploadServer(plan)
        let error = await #expect(throws: URLError.self) {
            try await Self.session().upload(for: Self.request(server), from: Self.content)
        }
        #expect(error?.code == .dataLengthExceedsMaximum)
        let requests = try await server.requests { requests in requests.contains { $0.method == "DELETE" } }
        #expect(Self.methods(requests).contains("DELETE"))
    }

    @Test(arguments: ["999999999", "5"]) func `an impossible offset fails the upload`(offset: String) async throws {
        var plan = UploadServer.Plan(faults: [
            Fault("POST", cut: 1_000_000),
            Fault(
                "HEAD", status: 204,
                fields: [["Upload-Draft-Interop-Version", "8"], ["Upload-Complete", "?0"], ["Upload-Offset", offset]]),
        ])
        plan.progressStep = 300_000
        let server = try UploadServer(plan)
        let error = await #expect(throws: URLError.self) {
            try await Self.session().upload(for: Self.request(server), from: Self.content)
        }
        #expect(error?.code == .badServerResponse)
        #expect(Self.methods(server.requests).contains("PATCH") == false)
    }

    @Test func `a lost response is recovered by asking for the offset`() async throws {
        let server = try UploadServer(UploadServer.Plan(faults: [Fault("POST", silent: true)]))
        let (_, response) = try await Self.session().upload(for: Self.request(server), from: Self.content)
        #expect((response as? HTTPURLResponse)?.statusCode == 204)
        #expect(server.isComplete())
        #expect(Set(Self.methods(try await server.requests(2))) == ["POST", "HEAD"])
    }

    @Test func `a streamed upload asks the delegate for a stream from the offset`() async throws {
        let server = try UploadServer(UploadServer.Plan(faults: [Fault("POST", cut: 1_000_000)]))
        let recorder = UploadStreamProvider(Self.content)
        let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
        session.uploadTask(withStreamedRequest: Self.request(server)).resume()
        let status = try await recorder.status.value { $0 }
        #expect(status == 200)
        #expect(try server.content() == Self.content)
        #expect(recorder.offsets.read { $0 } == [0, 1_000_000])
    }
}

private final class ProgressRecorder: NSObject, URLSessionTaskDelegate, @unchecked Sendable {
    let first = Watched<Bool?>(nil)
    // Set before the task is resumed, and then only read on the delegate queue: no lock is needed.
    var atFirst104: () -> Void = {}

    func urlSession(_ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse) {
        guard response.statusCode == 104 else { return }
        if first.read({ $0 }) == nil { atFirst104() }
        first.change { $0 = true }
    }
}
