// SPDX-License-Identifier: Apache-2.0

package import Foundation

/// Another implementation's TLS server on a loopback port: `openssl s_server`, or nginx with the test's configuration.
package final class PeerProcess: Sendable {
    package let port: Int
    private let process: ServerProcess
    /// The server's files.
    private let folder: TemporaryDirectory

    private init(port: Int, process: ServerProcess, folder: TemporaryDirectory) {
        self.port = port
        self.process = process
        self.folder = folder
    }

    package func url(_ path: String = "/", host: String = "127.0.0.1") throws -> URL {
        guard let url = URL(string: "https://\(host):\(port)\(path)") else { throw ServerProcess.Failure(description: "no URL") }
        return url
    }

    /// Starts a server that responds to every GET with a page about the handshake, and then closes the connection.
    package static func openSSL(chain: String, key: String, root: String, _ options: [String] = []) async throws -> PeerProcess {
        let folder = try TemporaryDirectory()
        let root = try folder.write(root.utf8, to: "root.pem").path
        let chain = try folder.write(chain.utf8, to: "chain.pem").path
        let key = try folder.write(key.utf8, to: "key.pem").path
        let arguments = [
            "s_server", "-accept", "127.0.0.1:0", "-www", "-cert", chain, "-cert_chain", chain, "-key", key, "-CAfile", root,
        ]
        let program = try ServerProcess.program("openssl", package: "openssl")
        let (process, output) = try await ServerProcess.start([program] + arguments + options) {
            $0.contains("ACCEPT 127.0.0.1:") && $0.hasSuffix("\n")
        }
        guard let port = output.firstMatch(of: /ACCEPT 127\.0\.0\.1:(\d+)/).flatMap({ Int($0.1) }) else {
            throw ServerProcess.Failure(description: output)
        }
        return PeerProcess(port: port, process: process, folder: folder)
    }

    /// Starts a server that keeps connections open, requests a client certificate, accepts any certificate, and returns the subject
    /// of the certificate in each response.
    package static func nginx(
        _ identity: TestCertificates.Identity, verify: String = "optional_no_ca"
    ) async throws -> PeerProcess {
        var output = ""
        for _ in 0..<5 {
            let folder = try TemporaryDirectory()
            // The port is free now; if another process takes it before nginx does, nginx ends, and another port is tried.
            let port = try RefusingPort().number
            try folder.write(identity.chainPEM.utf8, to: "chain.pem")
            try folder.write(identity.keyPEM.utf8, to: "key.pem")
            let file = try folder.write(configuration(folder.path, port, verify).utf8, to: "nginx.conf")
            do {
                let (process, _) = try await ServerProcess.start(
                    [ServerProcess.program("nginx", package: "nginx-light"), "-p", folder.path, "-c", file.path, "-e", "stderr"]
                ) { $0.contains("start worker process ") }
                return PeerProcess(port: port, process: process, folder: folder)
            } catch let failure as ServerProcess.Failure {
                output = failure.description
            }
        }
        throw ServerProcess.Failure(description: output)
    }

    private static func configuration(_ root: String, _ port: Int, _ verify: String) -> String {
        let places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map { "\($0)_temp_path \(root)/\($0);" }
        return """
            daemon off;
            \(geteuid() == 0 ? "user root;" : "")
            worker_processes 1;
            pid \(root)/nginx.pid;
            error_log stderr notice;
            events { worker_connections 64; }
            http {
                access_log off;
                \(places.joined(separator: "\n    "))
                server {
                    listen 127.0.0.1:\(port) ssl;
                    ssl_certificate \(root)/chain.pem;
                    ssl_certificate_key \(root)/key.pem;
                    ssl_protocols TLSv1.2 TLSv1.3;
                    ssl_verify_client \(verify);
                    location / {
                        default_type text/plain;
                        return 200 "$connection $ssl_client_s_dn";
                    }
                }
            }
            """
    }

    package func stop() { process.stop() }

    deinit { stop() }
}

/// Runs a test with `openssl s_server`.
package func withOpenSSL(
    _ identity: TestCertificates.Identity, root: String, _ options: [String] = [],
    test: (PeerProcess) async throws -> Void
) async throws {
    let server = try await PeerProcess.openSSL(chain: identity.chainPEM, key: identity.keyPEM, root: root, options)
    defer { server.stop() }
    try await test(server)
}
