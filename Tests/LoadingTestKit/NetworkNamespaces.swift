// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// Two network namespaces for a test, connected by a virtual Ethernet cable: `client` at 10.213.9.1, `server` at 10.213.9.2.
///
/// The process must be allowed to create namespaces, as root is.
package final class NetworkNamespaces: Sendable {
    package static let clientAddress = "10.213.9.1"
    package static let serverAddress = "10.213.9.2"
    /// Another address of the server; the client needs a route to it through ``serverAddress``.
    package static let farAddress = "198.51.100.7"

    private static let counter = Mutex(0)

    package let client: String
    package let server: String
    private let ip: String

    package init() async throws {
        ip = try ServerProcess.program("ip", package: "iproute2")
        let number = Self.counter.withLock { counter in
            counter += 1
            return counter
        }
        let name = "url\(ProcessInfo.processInfo.processIdentifier)-\(number)"
        (client, server) = (name + "c", name + "s")
        for command in [
            "netns add \(client)", "netns add \(server)",
            "-n \(client) link add cable0 type veth peer name cable0 netns \(server)",
            "-n \(client) addr add \(Self.clientAddress)/24 dev cable0",
            "-n \(server) addr add \(Self.serverAddress)/24 dev cable0", "-n \(server) addr add \(Self.farAddress)/32 dev lo",
            "-n \(client) link set lo up", "-n \(server) link set lo up", "-n \(client) link set cable0 up",
            "-n \(server) link set cable0 up",
        ] { try await run(command) }
    }

    deinit {
        for name in [client, server] {
            _ = try? ServerProcess.run(ServerProcess.Command([ip, "netns", "del", name], output: .nothing))
        }
    }

    /// Changes the client's namespace; the command is what follows `ip -n NAME`.
    package func client(_ command: String) async throws { try await run("-n \(client) \(command)") }

    private func run(_ command: String) async throws {
        _ = try await ServerProcess.run(
            ServerProcess.Command([ip] + command.split(separator: " ").map(String.init), output: .nothing))
    }

    /// The shell command that runs the program `$0`, with its arguments, in the client's namespace.
    package var enteringClient: String { "exec \(ip) netns exec \(client) \"$0\" \"$@\"" }

    /// Starts a program in the server's namespace, and waits until its output shows that it is ready.
    package func serve(
        _ arguments: [String], until isReady: @escaping @Sendable (String) -> Bool
    ) async throws -> ServerProcess {
        try await ServerProcess.start([ip, "netns", "exec", server] + arguments, until: isReady).0
    }

    /// Serves GET at both addresses, port 8000: ten bytes, of which `/half` sends four.
    ///
    /// For `/held`, the rest follows after a request for `/go` and a pause of two seconds; the pause ends early if the client
    /// disconnects.
    package func serveTenBytes() async throws -> ServerProcess {
        let python = try ServerProcess.program("python3", package: "python3")
        let script = """
            import http.server, select, threading, time
            go = threading.Event()
            class Handler(http.server.BaseHTTPRequestHandler):
                def do_GET(self):
                    self.send_response(200)
                    self.send_header("Content-Length", "10")
                    self.end_headers()
                    self.wfile.write(b"half")
                    self.wfile.flush()
                    if self.path == "/half": time.sleep(600)
                    if self.path == "/go": go.set()
                    if self.path == "/held":
                        go.wait(600)
                        select.select([self.connection], [], [], 2)
                    self.wfile.write(b"-whole")
                def log_message(self, *arguments): pass
            server = http.server.ThreadingHTTPServer(("", 8000), Handler)
            print("ready", flush=True)
            server.serve_forever()
            """
        return try await serve([python, "-c", script]) { $0.contains("ready") }
    }

    package func url(_ path: String = "/", at address: String = serverAddress) -> String { "http://\(address):8000\(path)" }
}
