// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

private let head = "HTTP/1.1 200 OK\r\n"

/// Which connection a request uses.
@Suite(.timeLimit(.minutes(1)))
struct HTTP1ConnectionTests {
    @Test func `consecutive requests share a connection`() async throws {
        try await withScenario(reply: { .ok("\($0.number)") }) { (server, session) async throws in
            for number in 0..<50 { #expect(try await session.text(server.url("/\(number)")) == "\(number)") }
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a program that the app starts does not keep a cancelled connection open`() async throws {
        try await withScenario(
            reply: { _ in ScriptedReply([.gate("go")] + ScriptedReply.ok("late").effects) }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            try await server.reached("go", times: 1)
            // The program gets every descriptor of this process that is not closed on exec, and runs until its input ends.
            let program = try #require(popen("cat >/dev/null", "w"))
            defer { pclose(program) }
            task.cancel()
            try await server.waitForClose(0)
            server.open("go")
        }
    }

    @Test(arguments: [
        head + "Connection: close\r\nContent-Length: 2\r\n\r\nok", head + "Connection: x, CLOSE\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ])
    func `a response that ends persistence closes its connection`(text: String) async throws {
        try await withScenario(reply: { _ in .raw(text) }) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "ok")
            #expect(try await session.text(server.url()) == "ok")
            #expect(server.connectionCount == 2)
            try await server.waitForClose(0)
        }
    }

    @Test func `at most the configured number of connections is opened, and other requests wait`() async throws {
        try await withScenario(
            configure: { $0.httpMaximumConnectionsPerHost = 2 },
            reply: { request in ScriptedReply([.gate("go")] + ScriptedReply.ok(request.path).effects) }
        ) { (server, session) async throws in
            let results = Delivered<String>()
            for number in 0..<8 {
                session.dataTask(with: server.url("/\(number)")) { data, _, _ in
                    results(String(decoding: data ?? Data(), as: UTF8.self))
                }.resume()
            }
            try await server.reached("go", times: 2)
            server.open("go")
            try await results.count(reaches: 8)
            #expect(results.all.sorted() == (0..<8).map { "/\($0)" })
            #expect(server.connectionCount == 2)
        }
    }

    @Test func `the default limit is six connections`() async throws {
        #expect(URLSessionConfiguration.default.httpMaximumConnectionsPerHost == 6)
        try await withScenario(reply: { _ in ScriptedReply([.gate("go")] + ScriptedReply.ok().effects) }) {
            (server, session) async throws in
            let results = Delivered<Bool>()
            for _ in 0..<20 { session.dataTask(with: server.url()) { _, _, error in results(error == nil) }.resume() }
            try await server.reached("go", times: 6)
            server.open("go")
            try await results.count(reaches: 20)
            #expect(results.all.allSatisfy { $0 })
            #expect(server.connectionCount == 6)
        }
    }

    @Test func `waiting requests are sent by priority, then in order`() async throws {
        try await withScenario(
            configure: { $0.httpMaximumConnectionsPerHost = 1 },
            reply: { $0.order == 0 ? ScriptedReply([.gate("go")] + ScriptedReply.ok().effects) : .ok() }
        ) { (server, session) async throws in
            let results = Delivered<Bool>()
            func start(_ path: String, _ priority: Float) {
                let task = session.dataTask(with: server.url(path)) { _, _, error in results(error == nil) }
                task.priority = priority
                task.resume()
            }
            start("/first", URLSessionTask.defaultPriority)
            try await server.reached("go")
            start("/low", URLSessionTask.lowPriority)
            start("/default1", URLSessionTask.defaultPriority)
            start("/high", URLSessionTask.highPriority)
            start("/default2", URLSessionTask.defaultPriority)
            // A load from another name of the host uses a separate connection; when it has ended, the earlier loads are queued.
            _ = try await session.data(from: server.url("/barrier", host: "localhost"))
            server.open("go")
            try await results.count(reaches: 5)
            #expect(
                server.requests.map(\.path).filter { $0 != "/barrier" } == ["/first", "/high", "/default1", "/default2", "/low"])
        }
    }

    @Test func `a cancelled load closes its connection and starts a waiting load`() async throws {
        try await withScenario(
            configure: { $0.httpMaximumConnectionsPerHost = 1 }, reply: { $0.path == "/stall" ? [.stall] : .ok("next") }
        ) { (server, session) async throws in
            let error = Delivered<URLError.Code?>()
            let task = session.dataTask(with: server.url("/stall")) { error(($2 as? URLError)?.code) }
            task.resume()
            _ = try await server.request(0)
            task.cancel()
            #expect(try await error.value == .cancelled)
            #expect(try await session.text(server.url()) == "next")
            try await server.waitForClose(0)
        }
    }

    @Test func `a load that waits for a connection can be cancelled`() async throws {
        try await withScenario(
            configure: { $0.httpMaximumConnectionsPerHost = 1 },
            reply: { _ in ScriptedReply([.gate("go")] + ScriptedReply.ok().effects) }
        ) { (server, session) async throws in
            let first = Delivered<Bool>()
            let second = Delivered<URLError.Code?>()
            session.dataTask(with: server.url("/1")) { first($2 == nil) }.resume()
            try await server.reached("go")
            let waiting = session.dataTask(with: server.url("/2")) { second(($2 as? URLError)?.code) }
            waiting.resume()
            waiting.cancel()
            #expect(try await second.value == .cancelled)
            server.open("go")
            #expect(try await first.value)
            #expect(server.requests.map(\.path) == ["/1"])
        }
    }

    @Test func `an idle connection that the server closed is not reused`() async throws {
        try await withScenario(reply: { $0.connection == 0 ? .ok("0").then(.close) : .ok("1") }) {
            (server, session) async throws in
            #expect(try await session.text(server.url()) == "0")
            try await server.waitForClose(0)
            let post = URLRequest(server.url(), method: "POST", body: Data("x".utf8))
            do {
                #expect(try await session.text(post).text == "1")
            } catch let error as URLError {
                // The client may not have noticed the close yet.
                #expect(error.code == .networkConnectionLost)
            }
        }
    }

    @Test func `different ports, and http and https, do not share connections`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(reply: { _ in .ok("clear") }) { (clear) async throws in
            try await withScenario(
                identity: certificates.valid, configure: { $0.tlsTrustRoots = [certificates.root] }, reply: { _ in .ok("secure") }
            ) { (secure, session) async throws in
                for _ in 0..<3 {
                    let found = try await session.text(clear.url())
                    #expect(found == "clear")
                    let again = try await session.text(secure.url())
                    #expect(again == "secure")
                }
                #expect(clear.connectionCount == 1)
                #expect(secure.connectionCount == 1)
            }
        }
    }

    @Test func `an invalidated session closes its connections`() async throws {
        try await withScriptedServer(reply: { _ in .ok() }) { (server) async throws in
            try await withSession { (session) async throws in
                _ = try await session.data(from: server.url())
                #expect(server.openConnectionCount == 1)
                session.finishTasksAndInvalidate()
                try await server.waitForAllClosed()
            }
        }
    }

    @Test func `a reset session uses new connections`() async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            _ = try await session.data(from: server.url())
            await session.reset()
            _ = try await session.data(from: server.url())
            #expect(server.requests.count == 2)
            #expect(server.connectionCount == 2)
        }
    }

    @Test func `after a flush no request uses an old connection, idle or busy`() async throws {
        try await withScenario(
            reply: { $0.path == "/busy" ? ScriptedReply([.gate("go")] + ScriptedReply.ok().effects) : .ok() }
        ) { (server, session) async throws in
            let busy = server.url("/busy")
            async let running = session.data(from: busy)
            try await server.reached("go")
            _ = try await session.data(from: server.url())
            #expect(server.connectionCount == 2)
            await session.flush()
            server.open("go")
            _ = try await running
            try await server.waitForAllClosed()
            _ = try await session.data(from: server.url())
            #expect(server.connectionCount == 3)
        }
    }

    @Test func `a thousand concurrent requests all succeed`() async throws {
        try await withScenario(
            configure: { $0.httpMaximumConnectionsPerHost = 32 }, reply: { .ok($0.path) }
        ) { (server, session) async throws in
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<1000 {
                    let url = server.url("/\(number)")
                    group.addTask { try await session.text(url) == "/\(number)" }
                }
                for try await isRight in group { #expect(isRight) }
            }
            #expect(server.requests.count == 1000)
            #expect(server.connectionCount <= 32)
        }
    }

    @Test func `sessions leak no descriptors`() async throws {
        // Other tests also open descriptors meanwhile, so this test detects only a leak in each session.
        let before = try ProcessProbe.openDescriptors()
        try await withScriptedServer(reply: { $0.path == "/bad" ? .raw("nonsense\r\n\r\n") : .ok() }) { (server) async throws in
            for _ in 0..<300 {
                try await withSession { (session) async throws in
                    _ = try await session.data(from: server.url())
                    _ = try? await session.data(from: server.url("/bad"))
                }
            }
            try await server.waitForAllClosed()
        }
        #expect(try ProcessProbe.openDescriptors() - before < 250)
    }
}
