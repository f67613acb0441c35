// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import LoadingTestKit
import NIOCore
import NIOPosix
import NIOSSL
import Testing

/// A minimal client with a blocking socket.
private struct PlainClient {
    enum Ending: Equatable { case closed, reset }
    struct Failure: Error { var what: String, code: Int32 }

    let descriptor: Int32

    init(port: Int) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = UInt16(port).bigEndian
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw Failure(what: "connect", code: errno) }
    }

    func send(_ text: String) throws {
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { throw Failure(what: "send", code: errno) }
            sent += count
        }
    }

    /// The result of the next read: nil at the end.
    func read(_ limit: Int = 65_536) throws -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = recv(descriptor, &bytes, limit, 0)
        guard count >= 0 else { throw Failure(what: "recv", code: errno) }
        return count == 0 ? nil : Array(bytes.prefix(count))
    }

    func readToEnd() throws -> (text: String, ending: Ending) {
        var bytes: [UInt8] = []
        do {
            while let more = try read() { bytes += more }
            return (String(decoding: bytes, as: UTF8.self), .closed)
        } catch let failure as Failure where failure.code == ECONNRESET {
            return (String(decoding: bytes, as: UTF8.self), .reset)
        }
    }

    /// Reads exactly `count` bytes, or up to the end.
    func read(exactly count: Int) throws -> String {
        var bytes: [UInt8] = []
        while bytes.count < count, let more = try read(count - bytes.count) { bytes += more }
        return String(decoding: bytes, as: UTF8.self)
    }

    func close() { _ = Glibc.close(descriptor) }
}

private let get = "GET /a?b HTTP/1.1\r\nHost: x\r\nX-One: 1\r\nx-one:  2 \r\n\r\n"

@Suite(.timeLimit(.minutes(1)))
struct ScriptedServerTests {
    @Test func `a program ends with the task that awaits it`() async throws {
        let hasBegun = Watched(false)
        let waiting = Task {
            try await ServerProcess.run(
                ServerProcess.Command(
                    ["/bin/sh", "-c", "echo ready; exec sleep 600"],
                    output: .pipe { data in hasBegun.change { $0 = $0 || !data.isEmpty } }))
        }
        try await hasBegun.value { $0 ? () : nil }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }

    @Test func `requests are recorded in order, with fields and bodies`() async throws {
        try await withScriptedServer(reply: { .ok("\($0.number)") }) { server in
            let client = try PlainClient(port: server.port)
            defer { client.close() }
            try client.send(get + "POST /c HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc")
            let chunked = "PUT /d HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: v\r\n\r\n"
            for byte in chunked.utf8 { try client.send(String(UnicodeScalar(byte))) }
            let requests = try await server.waitForRequests(3)
            #expect(requests.map(\.method) == ["GET", "POST", "PUT"])
            #expect(requests.map(\.target) == ["/a?b", "/c", "/d"])
            #expect(requests.map(\.number) == [0, 1, 2])
            #expect(requests[0].values(of: "X-ONE") == ["1", "2"])
            #expect(requests[0].rawHead == Array(get.utf8))
            #expect(requests[1].bodyText == "abc")
            #expect(requests[2].bodyText == "hello")
            #expect(requests[2].chunks == [2, 3])
            #expect(requests[2].trailers.map(\.value) == ["v"])
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a close step ends the connection after all earlier bytes`() async throws {
        try await withScriptedServer(reply: { _ in .ok("bye").then(.close) }) { server in
            let client = try PlainClient(port: server.port)
            defer { client.close() }
            try client.send(get)
            let (text, ending) = try client.readToEnd()
            #expect(text == "HTTP/1.1 200 Scripted\r\nContent-Length: 3\r\n\r\nbye")
            #expect(ending == .closed)
            try await server.waitForClose(0)
        }
    }

    @Test func `a reset resets the connection`() async throws {
        try await withScriptedServer(reply: { _ in [.write("half"), .gate("read"), .reset] }) { server in
            let client = try PlainClient(port: server.port)
            defer { client.close() }
            try client.send(get)
            #expect(try client.read(exactly: 4) == "half")
            server.open("read")
            #expect(try client.readToEnd().ending == .reset)
        }
    }

    @Test func `a half close leaves the other direction open`() async throws {
        try await withScriptedServer(reply: { $0.number == 0 ? .ok("1").then(.shutdownOutput) : [] }) { server in
            let client = try PlainClient(port: server.port)
            try client.send(get)
            #expect(try client.readToEnd().ending == .closed)
            try client.send(get)
            try await server.waitForRequests(2)
            client.close()
            try await server.waitForClose(0)
        }
    }

    @Test func `slow bytes arrive one by one`() async throws {
        try await withScriptedServer(reply: { _ in [.writeSlowly("slow and steady"), .close] }) { server in
            let client = try PlainClient(port: server.port)
            defer { client.close() }
            try client.send(get)
            #expect(try client.readToEnd().text == "slow and steady")
            #expect(server.bytesWritten(on: 0) == 15)
        }
    }

    @Test func `a gate holds a reply until it is opened`() async throws {
        try await withScriptedServer(reply: { _ in [.gate("door"), .write("in")] }) { server in
            let client = try PlainClient(port: server.port)
            defer { client.close() }
            try client.send(get)
            try await server.reached("door")
            #expect(server.bytesWritten(on: 0) == 0)
            server.open("door")
            #expect(try client.read(exactly: 2) == "in")
        }
    }

    @Test func `an early response does not wait for the body`() async throws {
        try await withScriptedServer(
            early: { _ in [.write("early"), .awaitBody(2), .write("two"), .awaitRequestEnd, .write("all")] },
            reply: { _ in [] }
        ) { server in
            let client = try PlainClient(port: server.port)
            defer { client.close() }
            try client.send("POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n")
            #expect(try client.read(exactly: 5) == "early")
            try client.send("ab")
            #expect(try client.read(exactly: 3) == "two")
            try client.send("cd")
            #expect(try client.read(exactly: 3) == "all")
            #expect(try await server.request(0).bodyText == "abcd")
        }
    }

    @Test func `an expectation is answered with 100`() async throws {
        try await withScriptedServer(reply: { .ok($0.body) }) { server in
            let client = try PlainClient(port: server.port)
            defer { client.close() }
            try client.send("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            #expect(try client.read(exactly: 25) == "HTTP/1.1 100 Continue\r\n\r\n")
            try client.send("ab")
            #expect(try client.read(exactly: 46).hasSuffix("ab"))
        }
    }

    @Test func `a large response is only written as fast as the client reads`() async throws {
        let chunk = [UInt8](repeating: 7, count: 65_536)
        try await withScriptedServer(sendBuffer: 65_536, reply: { _ in .large(chunk: chunk, count: 16_384) }) { server in
            let client = try PlainClient(port: server.port)
            try client.send(get)
            try await server.waitForBytesWritten(65_536, on: 0)
            #expect(server.bytesWritten(on: 0) < 64 << 20)
            client.close()
            try await server.waitForClose(0)
            #expect(server.bytesWritten(on: 0) < 64 << 20)
        }
    }

    @Test func `closing a server whose script throws fails`() async throws {
        let server = try await ScriptedServer.start(reply: { _ in throw CocoaError(.featureUnsupported) })
        let client = try PlainClient(port: server.port)
        defer { client.close() }
        try client.send(get)
        #expect(try client.readToEnd().text == "")
        await #expect(throws: ScriptedServer.ScriptError.self) { try await server.close() }
    }

    @Test func `a greeting precedes any request`() async throws {
        try await withScriptedServer(greeting: { [.write("hello \($0)"), .close] }, reply: { _ in [] }) { server in
            for number in 0..<2 {
                let client = try PlainClient(port: server.port)
                #expect(try client.readToEnd().text == "hello \(number)")
                client.close()
            }
        }
    }

    @Test func `a file supports ranges`() async throws {
        let file = ScriptedFile(Array("0123456789".utf8))
        try await withScriptedServer(reply: { file.reply(to: $0).then(.close) }) { server in
            for (fields, expected) in [
                ("", "200"), ("Range: bytes=4-\r\n", "206"), ("Range: bytes=4-\r\nIf-Range: \"v0\"\r\n", "200"),
                ("Range: bytes=10-\r\n", "416"),
            ] {
                let client = try PlainClient(port: server.port)
                try client.send("GET / HTTP/1.1\r\n\(fields)\r\n")
                let text = try client.readToEnd().text
                #expect(text.hasPrefix("HTTP/1.1 \(expected)"))
                if expected == "206" { #expect(text.hasSuffix("\r\n\r\n456789")) }
                client.close()
            }
        }
    }

    @Test func `gunzip accepts the gzip members`() throws {
        let directory = try TemporaryDirectory()
        let content = ScriptedFile.pattern(100_000)
        let file = try directory.write(GzipBytes.stored(content), to: "a.gz")
        try ServerProcess.run(ServerProcess.Command(["/bin/gzip", "-d", file.path], output: directory.file("output")))
        #expect(Array(try Data(contentsOf: directory.file("a"))) == content)
    }

    @Test func `a secure server presents its chain and speaks TLS`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok("secret").then(.close) }) { server in
            var configuration = TLSConfiguration.makeClientConfiguration()
            configuration.trustRoots = .certificates([try NIOSSLCertificate(bytes: Array(certificates.root), format: .der)])
            let context = try NIOSSLContext(configuration: configuration)
            let text = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(host: server.address, port: server.port) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(
                            NIOSSLClientHandler(context: context, serverHostname: "localhost"))
                        return try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                    }
                }
                .executeThenClose { inbound, outbound in
                    try await outbound.write(ByteBuffer(string: get))
                    var text = ""
                    for try await bytes in inbound { text += String(buffer: bytes) }
                    return text
                }
            #expect(text.hasSuffix("secret"))
        }
    }

    @Test func `nginx serves files from the start, and accepts uploads`() async throws {
        let nginx = try NginxServer.start(try TestCertificates.shared.get().valid)
        defer { nginx.stop() }
        try nginx.put("hello".utf8, at: "/a.txt")
        let client = try PlainClient(port: nginx.port)
        defer { client.close() }
        try client.send(
            "GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\nPUT /upload/b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
        )
        let (text, _) = try client.readToEnd()
        #expect(text.hasPrefix("HTTP/1.1 200 OK"), "\(nginx.errorLog)")
        #expect(text.contains("HTTP/1.1 201"))
        #expect(try nginx.content(at: "/upload/b") == Array("hi".utf8))
    }

    @Test func `the probe counts descriptors`() throws {
        let before = try ProcessProbe.openDescriptors()
        let pipe = Pipe()
        #expect(try ProcessProbe.openDescriptors() >= before)
        #expect(try ProcessProbe.residentBytes() > 1 << 20)
        try pipe.fileHandleForReading.close()
    }
}
