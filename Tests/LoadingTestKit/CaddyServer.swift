// SPDX-License-Identifier: Apache-2.0

package import Foundation

/// A Caddy server on its own loopback ports; its HTTP/2 implementation is Go's.
///
/// One port offers HTTP/2 by ALPN over TLS, the other with prior knowledge in cleartext.
///
/// It serves the files below its root. Responses below `/gzip/` are compressed, `/old` redirects to `/new`, and `/echo` responds
/// with the request's method and Content-Length.
package final class CaddyServer: Sendable {
    package let directory: TemporaryDirectory
    package let port: Int
    package let securePort: Int
    private let process: ServerProcess

    private init(directory: TemporaryDirectory, port: Int, securePort: Int, process: ServerProcess) {
        self.directory = directory
        self.port = port
        self.securePort = securePort
        self.process = process
    }

    package static func start(_ identity: TestCertificates.Identity) throws -> CaddyServer {
        let program = try ServerProcess.program("caddy", package: "caddy")
        let directory = try TemporaryDirectory()
        try FileManager.default.createDirectory(at: directory.file("html/gzip"), withIntermediateDirectories: true)
        try directory.write(identity.chainPEM.utf8, to: "chain.pem")
        try directory.write(identity.keyPEM.utf8, to: "key.pem")
        let (process, ports) = try ServerProcess.startServer(
            ports: 2, sign: "serving initial configuration", in: directory.file("log")
        ) { ports in
            let text = configuration(directory.path, port: ports[0], securePort: ports[1])
            let file = try directory.write(text.utf8, to: "Caddyfile")
            return ServerProcess.Command(
                [program, "run", "--config", file.path, "--adapter", "caddyfile"],
                environment: ["XDG_DATA_HOME": directory.path, "XDG_CONFIG_HOME": directory.path],
                output: directory.file("log"))
        }
        return CaddyServer(directory: directory, port: ports[0], securePort: ports[1], process: process)
    }

    /// Writes a file below the root.
    package func put(_ bytes: some Sequence<UInt8>, at path: String) throws {
        try directory.write(bytes, to: "html" + path)
    }

    package func url(_ path: String, secure: Bool = true) -> URL {
        let text = secure ? "https://localhost:\(securePort)\(path)" : "http://localhost:\(port)\(path)"
        guard let url = URL(string: text) else { preconditionFailure("'\(text)' is not a URL") }
        return url
    }

    package func stop() { process.stop() }

    deinit { stop() }

    private static func configuration(_ root: String, port: Int, securePort: Int) -> String {
        """
        {
            admin off
            auto_https off
            servers {
                protocols h1 h2 h2c
            }
        }
        (site) {
            bind 127.0.0.1
            root * \(root)/html
            redir /old /new 301
            encode /gzip/* gzip
            respond /echo "{http.request.method} {http.request.header.Content-Length}"
            file_server
        }
        http://localhost:\(port) {
            import site
        }
        https://localhost:\(securePort) {
            tls \(root)/chain.pem \(root)/key.pem
            import site
        }

        """
    }
}
