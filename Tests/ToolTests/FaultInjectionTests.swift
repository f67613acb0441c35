// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Whichever system call fails, the tool exits, reports the reason, and leaves no broken file.
@Suite(.timeLimit(.minutes(10)))
struct FaultInjectionTests {
    /// A command of the tool.
    enum Job: String, Sendable, CaseIterable {
        case get, getToFile, download, downloadLarge, upload

        var arguments: [String] {
            switch self {
            case .get: ["get"]
            case .getToFile: ["get", "-o", "file.bin"]
            case .download, .downloadLarge: ["download", "-o", "file.bin"]
            case .upload: ["upload", "report.bin"]
            }
        }

        var isDownload: Bool { self == .download || self == .downloadLarge }
        /// The content of the file; for `downloadLarge`, large enough for splice(2) and several writes.
        var content: [UInt8] { self == .downloadLarge ? FaultInjectionTests.large : FaultInjectionTests.content }
    }

    /// A kind of call, the errors that it may return, and the jobs that make it.
    struct Row: Sendable, CustomTestStringConvertible {
        let kind: String
        let errors: [Int32]
        var jobs = Job.allCases

        var testDescription: String { kind }
    }

    private static let block = ScriptedFile.pattern(65_536)
    static let content = Array([[UInt8]](repeating: block, count: 16).joined())
    static let large = Array([[UInt8]](repeating: block, count: 96).joined())
    private static let files: [Job] = [.getToFile, .download, .downloadLarge]
    private static let downloads: [Job] = [.download, .downloadLarge]

    static let rows = [
        Row(kind: "resolve", errors: [EAGAIN, ENOMEM, EIO]),
        Row(kind: "socket", errors: [EMFILE]),
        Row(kind: "connect", errors: [ECONNREFUSED, ENETUNREACH]),
        Row(kind: "send", errors: [ECONNRESET, EPIPE, EINTR]),
        Row(kind: "receive", errors: [ECONNRESET, ENOMEM, EINTR]),
        Row(kind: "mkdir", errors: [EACCES, ENOSPC], jobs: downloads),
        Row(kind: "open", errors: [EMFILE, ENOSPC, EINTR], jobs: files),
        Row(kind: "preallocate", errors: [ENOSPC, EOPNOTSUPP, EINTR], jobs: downloads),
        Row(kind: "write", errors: [ENOSPC, EIO, EINTR], jobs: files),
        Row(kind: "close", errors: [EIO], jobs: files),
        Row(kind: "rename", errors: [EACCES, EXDEV], jobs: downloads),
    ]

    @Test(arguments: rows)
    func `a failed call is an exit code and a message`(row: Row) async throws {
        let shim = try FaultShim()
        try await withScriptedServer(reply: { request in
            request.method == "PUT" ? .status(201) : ScriptedFile(Self.content(request.path)).reply(to: request)
        }) { server in
            for job in row.jobs {
                for error in row.errors {
                    for at in [1, 2, 3, 5] {
                        let fault = FaultShim.Fault(kind: row.kind, at: at, error: error)
                        let happened = try await run(job, with: fault, shim, server)
                        #expect(happened || at > 1, "\(job): no call of \(row.kind)")
                        if !happened { break }
                    }
                }
            }
        }
    }

    private static func content(_ path: String) -> [UInt8] { path == "/downloadLarge" ? large : content }

    /// Runs the tool with a fault and returns whether the fault occurred.
    private func run(
        _ job: Job, with fault: FaultShim.Fault, _ shim: FaultShim, _ server: ScriptedServer
    ) async throws -> Bool {
        let folder = try TemporaryDirectory()
        if job == .upload { try folder.write(job.content, to: "report.bin") }
        let address = server.url("/\(job)", host: "localhost").absoluteString
        let result = try await Tool.run(
            job.arguments + ["--max-time", "60", address], in: folder, environment: shim.environment(fault, in: folder)
        )
        let happened = shim.happened()
        let row = Comment(rawValue: "\(job), \(fault): \(result.code) \(result.errors) \(try folder.names)")
        guard result.code == 0 else {
            #expect([6, 7, 18, 23, 26, 52, 56].contains(result.code), row)
            #expect(happened && result.errors.contains("urlsession: (\(result.code)) "), row)
            if job.isDownload { try await expectNothingBroken(folder, job, result, address, row) }
            return happened
        }
        switch job {
        case .get: #expect(result.output == Data(job.content), row)
        case .getToFile, .download, .downloadLarge:
            #expect(try Data(contentsOf: folder.file("file.bin")) == Data(job.content), row)
            #expect(try folder.names == ["file.bin"], row)
        case .upload: #expect(server.requests.last?.body == job.content, row)
        }
        return happened
    }

    /// Expects no file, or a partial file whose download the tool offers to resume, and does resume.
    private func expectNothingBroken(
        _ folder: TemporaryDirectory, _ job: Job, _ result: Tool.Result, _ address: String, _ row: Comment
    ) async throws {
        guard try !folder.names.isEmpty else { return }
        #expect(try folder.names == ["file.bin.part", "file.bin.resume"], row)
        #expect(result.errors.contains("resume with: urlsession download --resume"), row)
        let second = try await Tool.run(["download", "--resume", "-o", "file.bin", address], in: folder)
        #expect(second.code == 0, "\(row): \(second.errors)")
        #expect(try Data(contentsOf: folder.file("file.bin")) == Data(job.content), row)
        #expect(try folder.names == ["file.bin"], row)
    }

    @Test(arguments: [["upload", "-"], ["get", "-d", "@-"], ["get", "-d", "@report.bin"]])
    func `an input that cannot be read to its end is not sent as if it were complete`(arguments: [String]) async throws {
        let shim = try FaultShim()
        let folder = try TemporaryDirectory()
        let input = try folder.write(Self.large, to: "report.bin")
        try await withScriptedServer(reply: { _ in .status(201) }) { server in
            for at in 1...3 {
                let fault = FaultShim.Fault(kind: "read", at: at, error: EIO)
                let result = try await Tool.run(
                    arguments + ["--max-time", "60", server.url("/a").absoluteString], in: folder, input: input,
                    environment: shim.environment(fault, in: folder)
                )
                guard shim.happened() else {
                    #expect(result.code == 0 && at > 1, "\(fault): \(result.errors)")
                    break
                }
                #expect([26, 56].contains(result.code), "\(fault): \(result.code) \(result.errors)")
                #expect(result.errors.contains("urlsession: (\(result.code)) "))
                #expect(server.requests.allSatisfy { !$0.isComplete || $0.bodyLength == Self.large.count }, "\(fault)")
            }
        }
    }
}
