// SPDX-License-Identifier: Apache-2.0

package import Foundation

/// A Caddy server on its own loopback ports; its HTTP/2 implementation is Go's.
///
/// One port offers HTTP/2 by ALPN over TLS, and HTTP/3 if the test wants it; the other HTTP/2 with prior knowledge in cleartext.
///
/// It serves the files below its root. Responses below `/gzip/` are compressed, `/old` redirects to `/new`, `/echo` responds with the
/// request's method and Content-Length, and `/client` with the subject of the client's certificate.
package final class CaddyServer: Sendable {
    /// Whether the server asks for client certificates of a root in PEM, over TLS and QUIC.
    package enum ClientCertificates: Sendable {
        case ignored
        case optional(String)
        case required(String)
    }

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

    package static func start(
        _ identity: TestCertificates.Identity, http3: Bool = false, clients: ClientCertificates = .ignored
    ) throws -> CaddyServer {
        let program = try ServerProcess.program("caddy", package: "caddy")
        let directory = try TemporaryDirectory()
        try FileManager.default.createDirectory(at: directory.file("html/gzip"), withIntermediateDirectories: true)
        try directory.write(identity.chainPEM.utf8, to: "chain.pem")
        try directory.write(identity.keyPEM.utf8, to: "key.pem")
        var mode: String?
        switch clients {
        case .ignored: break
        case .optional(let root):
            mode = "verify_if_given"
            try directory.write(root.utf8, to: "clients.pem")
        case .required(let root):
            mode = "require_and_verify"
            try directory.write(root.utf8, to: "clients.pem")
        }
        let clientMode = mode
        let (process, ports) = try ServerProcess.startServer(
            ports: 2, sign: "serving initial configuration", in: directory.file("log")
        ) { ports in
            let text = configuration(
                directory.path, port: ports[0], securePort: ports[1], http3: http3, clientMode: clientMode)
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

    private static func configuration(
        _ root: String, port: Int, securePort: Int, http3: Bool, clientMode: String?
    ) -> String {
        let clients = clientMode.map { mode in
            "{\nclient_auth {\nmode \(mode)\ntrusted_ca_cert_file \(root)/clients.pem\n}\n}"
        }
        // With client certificates, the server answers every request over HTTP/3 with 421 unless names may differ.
        let strictness = clientMode == nil ? "" : "strict_sni_host insecure_off"
        return """
            {
                admin off
                auto_https off
                servers {
                    protocols h1 h2 h2c\(http3 ? " h3" : "")
                    \(strictness)
                }
            }
            (site) {
                bind 127.0.0.1
                root * \(root)/html
                redir /old /new 301
                encode /gzip/* gzip
                respond /client "{http.request.tls.client.subject}"
                respond /echo "{http.request.method} {http.request.header.Content-Length}"
                file_server
            }
            http://localhost:\(port) {
                import site
            }
            https://localhost:\(securePort) {
                tls \(root)/chain.pem \(root)/key.pem \(clients ?? "")
                import site
            }

            """
    }
}
