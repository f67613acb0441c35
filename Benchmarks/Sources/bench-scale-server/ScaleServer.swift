// SPDX-License-Identifier: Apache-2.0

import Glibc
import NIOCore
import NIOPosix
import Synchronization

/// The server of `Benchmarks/scale`, whose response depends on the path.
///
/// It listens only on loopback, in both address families, and accepts every host name.
///
/// | Path | Response |
/// |---|---|
/// | `/ok` | two bytes |
/// | `/close` | two bytes, and the connection is closed |
/// | `/wait/MS` | two bytes, after MS milliseconds |
/// | `/never` | none |
/// | `/round/N` | N redirects, each to a new host name |
/// | `/store/SIZE/…` | a storable body of that size, and a cookie |
/// | `/size/SIZE` | a body of that size |
@main
struct ScaleServer {
    static func main() throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup(numberOfThreads: 1))
            .serverChannelOption(.backlog, value: 16_384)
            .serverChannelOption(.maxMessagesPerRead, value: 256)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Answers()) }
            }
        let channel = try bootstrap.bind(host: "127.0.0.1", port: 0).wait()
        let port = channel.localAddress?.port ?? 0
        // Without IPv6, or if the port is taken, clients use the IPv4 addresses of the host names.
        _ = try? bootstrap.bind(host: "::1", port: port).wait()
        print(port)
        fflush(nil)
        try channel.closeFuture.wait()
    }
}

private final class Answers: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private static let names = Atomic<Int>(0)
    private static let cookies = Atomic<Int>(0)
    private static let zeros = ByteBuffer(repeating: 0, count: 1 << 20)
    private static let ok = ByteBuffer(string: "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok")
    private static let okAndClose = ByteBuffer(
        string: "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")

    /// The received bytes of an incomplete head.
    private var received: [UInt8] = []
    private var path: [Substring] = []
    private var bodyLeft = 0

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        if bodyLeft == 0 { readHead(&bytes) }
        guard received.isEmpty else { return }
        bodyLeft -= bytes.readableBytes
        if bodyLeft <= 0 { answer(path, on: context) }
    }

    /// Reads a request's head.
    ///
    /// Requests are not pipelined, so the bytes after the head are the request's body.
    private func readHead(_ bytes: inout ByteBuffer) {
        received += bytes.readableBytesView
        let head = String(decoding: received, as: Unicode.ASCII.self)
        let lines = head.split(separator: "\r\n", omittingEmptySubsequences: false)
        guard let end = lines.firstIndex(of: ""), end + 1 < lines.count else { return }
        let field = lines[..<end].first { $0.lowercased().hasPrefix("content-length:") }
        bodyLeft = field.flatMap { Int($0.filter(\.isNumber)) } ?? 0
        path = (lines[0].split(separator: " ").dropFirst().first ?? "/").split(separator: "/").map { $0.prefix { $0 != "?" } }
        let length = lines[..<end].reduce(2) { $0 + $1.utf8.count + 2 }
        bytes = ByteBuffer(bytes: received.dropFirst(length))
        received.removeAll(keepingCapacity: true)
    }

    private func answer(_ path: [Substring], on context: ChannelHandlerContext) {
        let number = path.count > 1 ? Int(path[1]) ?? 0 : 0
        switch path.first {
        case "ok": write(Self.ok, on: context)
        case "close": write(Self.okAndClose, on: context, thenClose: true)
        case "wait":
            let bound = context.loopBound
            context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(Int64(number))) {
                self.write(Self.ok, on: bound.value)
            }
        case "never": break
        case "round" where number > 0: redirect(number - 1, on: context)
        case "round": write(Self.ok, on: context)
        case "size":
            let size = min(number, Self.zeros.readableBytes)
            context.write(wrapOutboundOut(ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n")), promise: nil)
            if let body = Self.zeros.getSlice(at: 0, length: size) { write(body, on: context) }
        case "store": store(min(number, Self.zeros.readableBytes), on: context)
        default: write(ByteBuffer(string: "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), on: context)
        }
    }

    private func redirect(_ left: Int, on context: ChannelHandlerContext) {
        let name = "round\(Self.names.wrappingAdd(1, ordering: .relaxed).oldValue).localhost"
        let target = "http://\(name):\(context.channel.localAddress?.port ?? 0)/round/\(left)"
        let head = "HTTP/1.1 302 Found\r\nLocation: \(target)\r\nContent-Length: 0\r\n\r\n"
        write(ByteBuffer(string: head), on: context)
    }

    private func store(_ size: Int, on context: ChannelHandlerContext) {
        let cookie = "visit=\(Self.cookies.wrappingAdd(1, ordering: .relaxed).oldValue); Max-Age=3600"
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nSet-Cookie: \(cookie)\r\nContent-Length: \(size)\r\n\r\n"
        context.write(wrapOutboundOut(ByteBuffer(string: head)), promise: nil)
        guard let body = Self.zeros.getSlice(at: 0, length: size) else { return }
        write(body, on: context)
    }

    private func write(_ answer: ByteBuffer, on context: ChannelHandlerContext, thenClose: Bool = false) {
        let bound = context.loopBound
        let written = context.writeAndFlush(wrapOutboundOut(answer))
        if thenClose { written.assumeIsolated().whenComplete { _ in bound.value.close(promise: nil) } }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
