// SPDX-License-Identifier: Apache-2.0

import AsyncHTTPClient
import BenchKit
import Glibc
import NIOCore
import NIOPosix
import NIOSSL

/// The client async-http-client, used through its async API.
struct AHCPeer: Peer {
    let client: HTTPClient

    init(_ options: Options) {
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = options.connections
        configuration.timeout = .init(connect: .seconds(60), read: .seconds(60))
        if let bundle = environment("SSL_CERT_FILE") {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.trustRoots = .file(bundle)
            configuration.tlsConfiguration = tls
        }
        configuration.httpVersion = options.usesHTTP2 ? .automatic : .http1Only
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    func get(_ url: String) async throws -> Int {
        let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(120))
        guard response.status == .ok else { throw BenchFailure("status \(response.status.code)") }
        return try await response.body.collect(upTo: 1 << 24).readableBytes
    }

    func download(_ url: String, to path: String) async throws -> Int {
        let request = try HTTPClient.Request(url: url)
        let delegate = try FileDownloadDelegate(path: path)
        return try await client.execute(request: request, delegate: delegate).get().receivedBytes
    }

    func iterate(_ url: String) async throws -> Int {
        let response = try await client.execute(HTTPClientRequest(url: url), timeout: .minutes(10))
        var total = 0
        for try await buffer in response.body { total += buffer.readableBytes }
        return total
    }

    func delegate(_ url: String) async throws -> Int {
        final class Count: HTTPClientResponseDelegate {
            var total = 0
            func didReceiveBodyPart(task: HTTPClient.Task<Int>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
                total += buffer.readableBytes
                return task.eventLoop.makeSucceededVoidFuture()
            }
            func didFinishRequest(task: HTTPClient.Task<Int>) throws -> Int { total }
        }
        return try await client.execute(request: try HTTPClient.Request(url: url), delegate: Count()).get()
    }

    func upload(_ path: String, to url: String) async throws {
        let handle = try await NIOSingletons.posixBlockingThreadPool.runIfActive { try NIOFileHandle(_deprecatedPath: path) }
        let region = try await NIOSingletons.posixBlockingThreadPool.runIfActive { try FileRegion(fileHandle: handle) }
        let io = NonBlockingFileIO(threadPool: .singleton)
        var request = try HTTPClient.Request(url: url, method: .PUT)
        let loop = client.eventLoopGroup.next()
        request.body = .stream(contentLength: Int64(region.readableBytes)) { writer in
            io.readChunked(
                fileRegion: region, chunkSize: 128 * 1024, allocator: ByteBufferAllocator(), eventLoop: loop
            ) { writer.write(.byteBuffer($0)) }
        }
        let response = try await client.execute(request: request, eventLoop: .delegateAndChannel(on: loop)).get()
        try handle.close()
        guard response.status.code < 300 else { throw BenchFailure("status \(response.status.code)") }
    }
}

@main
struct Main {
    static func main() async { await runBenchmark { AHCPeer($0) } }
}
