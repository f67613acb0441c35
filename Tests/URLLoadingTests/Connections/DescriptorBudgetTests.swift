//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import LoadingTestKit
import Testing
import URLLoading

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What becomes of loads where descriptors are few: each scene runs in a process of its own.
@Suite(.timeLimit(.minutes(2)))
struct DescriptorBudgetTests {
    private static let server: Result<NginxServer, any Error> = Result {
        let server = try NginxServer.start(try TestCertificates.shared.get().valid)
        try server.put("hello".utf8, at: "/hello.txt")
        return server
    }

    private func run(_ suite: String, descriptors: Int) async throws {
        let server = try Self.server.get()
        try await OwnProcess.run(
            suite, environment: [DescriptorScene.variable: "\(server.port)"],
            wrapper: ["/bin/sh", "-c", "ulimit -n \(descriptors); exec \"$@\"", "sh"])
    }

    @Test func `loads to more hosts than there are descriptors succeed, and leave some to the app`() async throws {
        try await run("ManyHostsScene", descriptors: 128)
    }

    @Test func `where the app has all descriptors, an idle connection makes room for another`() async throws {
        try await run("NoDescriptorScene", descriptors: 128)
    }
}

enum DescriptorScene {
    static let variable = "URL_LOADING_TEST_PORT"

    /// The server under another name: each leads to this machine.
    static func url(_ number: Int) throws -> URL {
        let port = try #require(ProcessInfo.processInfo.environment[variable])
        return try #require(URL(string: "http://host\(number).localhost:\(port)/hello.txt"))
    }
}

@Suite(.enabled(if: OwnProcess.isHere("ManyHostsScene")), .timeLimit(.minutes(1)))
struct ManyHostsScene {
    @Test func `four hundred hosts by two sessions`() async throws {
        let isDone = Watched(false)
        let failures = Watched<[String]>([])
        // The app goes on opening files.
        let prober = Thread {
            while isDone.read({ !$0 }) {
                let number = open("/dev/null", O_RDONLY | O_CLOEXEC)
                if number < 0 { failures.change { $0.append("no file can be opened") } } else { close(number) }
                sched_yield()
            }
        }
        prober.start()
        defer { isDone.change { $0 = true } }
        // A timeout that is far too short for those that wait in line, if it counted for them.
        let configure: (URLSessionConfiguration) -> Void = { $0.timeoutIntervalForRequest = 5 }
        try await withSession(configure) { (first) async throws in
            try await withSession(configure) { (second) async throws in
                await withTaskGroup(of: Void.self) { group in
                    for number in 0..<800 {
                        let session = number % 2 == 0 ? first : second
                        group.addTask {
                            do {
                                let text = try await session.text(DescriptorScene.url(number / 2))
                                if text != "hello" { failures.change { $0.append(text) } }
                            } catch {
                                failures.change { $0.append("\(error)") }
                            }
                        }
                    }
                }
            }
        }
        #expect(failures.read(\.isEmpty), "\(failures.read { $0.prefix(3) })")
    }
}

@Suite(.enabled(if: OwnProcess.isHere("NoDescriptorScene")), .timeLimit(.minutes(1)))
struct NoDescriptorScene {
    @Test func `nothing is left but a connection that idles`() async throws {
        try await withSession { (session) async throws in
            #expect(try await session.text(DescriptorScene.url(1)) == "hello")
            var held: [CInt] = []
            while held.count < 1_000 {
                let number = open("/dev/null", O_RDONLY | O_CLOEXEC)
                if number < 0 { break }
                held.append(number)
            }
            let result = await Result { try await session.text(DescriptorScene.url(2)) }
            for number in held { close(number) }
            #expect(try result.get() == "hello")
        }
    }

    @Test func `a load that finds none beside a connection in use waits for one`() async throws {
        try await withScriptedServer(reply: { _ in [.write(ScriptedReply.head(200, [("Content-Length", "9")])), .stall] }) {
            (server) async throws in
            try await withSession { (session) async throws in
                let task = session.dataTask(with: server.url())
                task.resume()
                _ = try await server.request(0)
                var held: [CInt] = []
                while held.count < 1_000 {
                    let number = open("/dev/null", O_RDONLY | O_CLOEXEC)
                    if number < 0 { break }
                    held.append(number)
                }
                async let text = session.text(DescriptorScene.url(5))
                // A load that fails shows that the other one had its chance.
                try await withSession({ $0.timeoutIntervalForResource = 1 }) { (other) async throws in
                    await #expect(throws: URLError.self) { try await other.text(DescriptorScene.url(6)) }
                }
                for number in held { close(number) }
                #expect(try await text == "hello")
                task.cancel()
            }
        }
    }

    @Test func `a load that finds none at all waits for one`() async throws {
        var held: [CInt] = []
        while held.count < 1_000 {
            let number = open("/dev/null", O_RDONLY | O_CLOEXEC)
            if number < 0 { break }
            held.append(number)
        }
        try await withSession { (session) async throws in
            async let text = session.text(DescriptorScene.url(3))
            // A load that fails shows that the other one had its chance.
            let failed = Delivered<Void>()
            var request = URLRequest(url: try DescriptorScene.url(4))
            request.timeoutInterval = 0.3
            session.dataTask(with: request) { _, _, _ in failed(()) }.resume()
            try await failed.value
            for number in held { close(number) }
            #expect(try await text == "hello")
        }
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ work: () async throws -> Success) async {
        do { self = .success(try await work()) } catch { self = .failure(error) }
    }
}
