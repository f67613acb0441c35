// SPDX-License-Identifier: Apache-2.0

package import Foundation

#if canImport(Glibc)
import Glibc
#endif

/// An independent WebSocket server (Python, websockets) in another process, on its own loopback ports.
///
/// The first component of the path selects the behavior: `/echo` echoes messages; `/close/CODE/REASON` closes; `/zeros/COUNT` sends
/// one message of that many bytes, and echoes; `/count/NUMBER` sends that many short texts, and echoes; `/wait` reads until the
/// client closes. Subprotocols: `chat` and `superchat`. The server records how each connection ends.
package final class WebSocketsServer: Sendable {
    /// A port, and the compression parameters that it agrees to if the client offers compression.
    package enum Access: Int, Sendable, CaseIterable {
        case clear, secure
        /// permessage-deflate as the client offers it: with context takeover in both directions.
        case compressed
        /// Without context takeover in both directions.
        case noContextTakeover
        /// Windows of 512 bytes, also for the client if its offer permits that.
        case small
    }

    package struct End: Sendable, Hashable {
        package var path: String
        /// The code of the client's close frame; 1005 if the frame has none, 1006 if there was no close frame.
        package var code: Int
        package var reason: String
        /// The negotiated extensions.
        package var extensions: String
    }

    private let directory: ServerDirectory
    private let process: ServerProcess
    private let ports: [Int]
    private let ends: Watched<(text: String, hasEnded: Bool)>

    private init(
        directory: ServerDirectory, process: ServerProcess, ports: [Int], ends: Watched<(text: String, hasEnded: Bool)>
    ) {
        self.directory = directory
        self.process = process
        self.ports = ports
        self.ends = ends
    }

    package static func start(_ identity: TestCertificates.Identity) throws -> WebSocketsServer {
        let python = try ServerProcess.program("python3", package: "python3 python3-websockets")
        let directory = try ServerDirectory()
        try directory.write(identity.chainPEM.utf8, to: "chain.pem")
        try directory.write(identity.keyPEM.utf8, to: "key.pem")
        let program = try directory.write(Self.program.utf8, to: "server.py")
        let sockets = try Access.allCases.map { _ in try ServerProcess.listeningSocket() }
        defer { for socket in sockets { Glibc.close(socket.descriptor) } }
        let ends = Watched((text: "", hasEnded: false))
        let process = try ServerProcess.start(
            ServerProcess.Command(
                [python, program.path, directory.file("chain.pem").path, directory.file("key.pem").path],
                output: .pipe { data in
                    ends.change { ends in
                        ends.text += String(decoding: data, as: UTF8.self)
                        ends.hasEnded = data.isEmpty
                    }
                },
                errors: .file(directory.file("log")), sockets: sockets.map(\.descriptor)))
        return WebSocketsServer(directory: directory, process: process, ports: sockets.map(\.port), ends: ends)
    }

    package func url(_ path: String, _ access: Access = .clear) -> URL {
        let text = "\(access == .secure ? "wss" : "ws")://localhost:\(ports[access.rawValue])\(path)"
        guard let url = URL(string: text) else { preconditionFailure("'\(text)' is not a URL") }
        return url
    }

    /// Waits until `count` connections of a path have ended; returns how they ended.
    package func ends(of path: String, count: Int = 1) async throws -> [End] {
        let log = directory.file("log")
        return try await ends.value { ends -> [End]? in
            let found = Self.ends(ends.text).filter { $0.path == path }
            return found.count >= count || ends.hasEnded ? found : nil
        }.checked(count, log)
    }

    private static func ends(_ text: String) -> [End] {
        text.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
            guard fields.count == 4, let code = Int(fields[1]) else { return nil }
            return End(path: fields[0], code: code, reason: fields[2], extensions: fields[3])
        }
    }

    package func stop() { process.stop(SIGKILL) }

    deinit { stop() }

    /// Serves on the listening sockets 3 and above, in the order of ``Access``, and writes a line for each connection that ends.
    private static let program = #"""
        import asyncio, socket, ssl, sys
        import websockets
        from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory

        async def handle(connection):
            words = connection.path.split("/")[1:]
            try:
                if words[0] == "close":
                    await connection.close(int(words[1]), words[2])
                elif words[0] == "zeros":
                    await connection.send(bytes(int(words[1])))
                elif words[0] == "count":
                    for number in range(int(words[1])):
                        await connection.send(str(number))
                async for message in connection:
                    if words[0] != "wait":
                        await connection.send(message)
            except websockets.ConnectionClosed:
                pass
            try:
                await connection.wait_closed()
            finally:
                received = connection.close_rcvd
                code = 1006 if received is None else received.code
                reason = "" if received is None else received.reason
                agreed = ";".join(repr(extension) for extension in connection.extensions)
                print(connection.path, code, reason, agreed, sep="|", flush=True)

        def small():
            return [
                ServerPerMessageDeflateFactory(server_max_window_bits=9, client_max_window_bits=9),
                ServerPerMessageDeflateFactory(server_max_window_bits=9),
                ServerPerMessageDeflateFactory(),
            ]

        async def main():
            secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            secure.load_cert_chain(sys.argv[1], sys.argv[2])
            settings = [
                {"compression": None},
                {"compression": None, "ssl": secure},
                {"compression": None, "extensions": [ServerPerMessageDeflateFactory()]},
                {"compression": None, "extensions": [ServerPerMessageDeflateFactory(True, True)]},
                {"compression": None, "extensions": small()},
            ]
            for number, setting in enumerate(settings):
                await websockets.serve(
                    handle, sock=socket.socket(fileno=3 + number), max_size=None, ping_interval=None,
                    subprotocols=["superchat", "chat"], backlog=1024, **setting)
            await asyncio.Future()

        asyncio.run(main())
        """#
}

extension [WebSocketsServer.End] {
    fileprivate func checked(_ count: Int, _ log: URL) throws -> Self {
        guard self.count >= count else {
            let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
            throw ServerProcess.Failure(description: "the server ended: \(text.suffix(2000))")
        }
        return self
    }
}
