// SPDX-License-Identifier: Apache-2.0

package import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#endif

/// An nginx on its own loopback ports, with its own files.
///
/// This process creates the listening sockets and passes them to nginx, in the variable NGINX, as in nginx's binary upgrade.
/// Connections are therefore accepted from the beginning, and no port is guessed.
///
/// It serves the files below its root; responses below `/gzip/` are compressed; `/slow/` sends 256 KiB/s; `/upload/` accepts PUT
/// and DELETE; `/old` redirects to `/new`; `/basic/` requires Basic authentication of the user ada.
package final class NginxServer: Sendable {
    /// A port, with its protocol.
    package enum Access: Int, Sendable, CaseIterable {
        case clear, secure
        /// HTTP/2: with ALPN over TLS, or with prior knowledge in cleartext.
        case http2, http2InClear
    }

    package let directory: TemporaryDirectory
    private let ports: [Int]
    private let process: ServerProcess

    private init(directory: TemporaryDirectory, ports: [Int], process: ServerProcess) {
        self.directory = directory
        self.ports = ports
        self.process = process
    }

    /// Starts a server; if cipher suites are given, in OpenSSL's notation, the server uses only TLS 1.2 with these suites.
    ///
    /// A connection accepts `requestsPerConnection` requests.
    package static func start(
        _ identity: TestCertificates.Identity, ciphers: String? = nil, requestsPerConnection: Int = 1_000_000
    ) throws -> NginxServer {
        let program = try ServerProcess.program("nginx", package: "nginx-light")
        let directory = try TemporaryDirectory()
        for name in ["html/gzip", "html/slow", "html/upload", "html/basic", "temp"] {
            try FileManager.default.createDirectory(at: directory.file(name), withIntermediateDirectories: true)
        }
        let sockets = try Access.allCases.map { _ in try ServerProcess.listeningSocket() }
        defer { for socket in sockets { Glibc.close(socket.descriptor) } }
        try directory.write(identity.chainPEM.utf8, to: "chain.pem")
        try directory.write(identity.keyPEM.utf8, to: "key.pem")
        try directory.write("ada:{PLAIN}lovelace\n".utf8, to: "users")
        let text = configuration(directory.path, ports: sockets.map(\.port), ciphers, requestsPerConnection)
        let file = try directory.write(text.utf8, to: "nginx.conf")
        let process = try ServerProcess.start(
            ServerProcess.Command(
                [program, "-p", directory.path, "-c", file.path, "-e", directory.path + "/error.log"],
                environment: ["NGINX": sockets.indices.map { "\(3 + $0);" }.joined()], output: .nothing,
                sockets: sockets.map(\.descriptor)))
        return NginxServer(directory: directory, ports: sockets.map(\.port), process: process)
    }

    /// Writes a file below the root.
    package func put(_ bytes: some Sequence<UInt8>, at path: String) throws {
        try directory.write(bytes, to: "html" + path)
    }

    /// The content of a file below the root, for instance after a PUT.
    package func content(at path: String) throws -> [UInt8] { Array(try Data(contentsOf: directory.file("html" + path))) }

    package var errorLog: String { (try? String(contentsOf: directory.file("error.log"), encoding: .utf8)) ?? "" }

    package var port: Int { port(.clear) }
    package func port(_ access: Access) -> Int { ports[access.rawValue] }

    package func url(_ path: String, secure: Bool = false) -> URL { url(path, secure ? .secure : .clear) }

    package func url(_ path: String, _ access: Access) -> URL {
        let text =
            switch access {
            case .clear, .http2InClear: "http://127.0.0.1:\(port(access))\(path)"
            case .secure, .http2: "https://localhost:\(port(access))\(path)"
            }
        guard let url = URL(string: text) else { preconditionFailure("'\(text)' is not a URL") }
        return url
    }

    package func stop() { process.stop() }

    deinit { stop() }

    private static func listen(_ access: Access, _ port: Int) -> String {
        switch access {
        case .clear: "listen 127.0.0.1:\(port);"
        case .secure: "listen 127.0.0.1:\(port) ssl;"
        case .http2: "listen 127.0.0.1:\(port) ssl http2;"
        case .http2InClear: "listen 127.0.0.1:\(port) http2;"
        }
    }

    private static func configuration(_ root: String, ports: [Int], _ ciphers: String?, _ requestsPerConnection: Int) -> String {
        """
        daemon off;
        \(geteuid() == 0 ? "user root;" : "")
        worker_processes 1;
        pid \(root)/nginx.pid;
        error_log \(root)/error.log notice;
        events { worker_connections 4096; }
        http {
            access_log off;
            client_body_temp_path \(root)/temp/body;
            proxy_temp_path \(root)/temp/proxy;
            fastcgi_temp_path \(root)/temp/fastcgi;
            uwsgi_temp_path \(root)/temp/uwsgi;
            scgi_temp_path \(root)/temp/scgi;
            client_max_body_size 0;
            keepalive_requests \(requestsPerConnection);
            types { text/plain txt; application/json json; application/octet-stream bin; }
            default_type application/octet-stream;
            autoindex off;
            server {
                \(zip(Access.allCases, ports).map { listen($0, $1) }.joined(separator: "\n        "))
                ssl_certificate \(root)/chain.pem;
                ssl_certificate_key \(root)/key.pem;
                \(ciphers.map { "ssl_protocols TLSv1.2; ssl_ciphers \($0);" } ?? "ssl_protocols TLSv1.2 TLSv1.3;")
                root \(root)/html;
                location /gzip/ { gzip on; gzip_types *; gzip_min_length 1; }
                location /slow/ { limit_rate 256k; }
                location /upload/ { dav_methods PUT DELETE; }
                location /basic/ { auth_basic "tower"; auth_basic_user_file \(root)/users; dav_methods PUT; }
                location = /old { return 301 /new; }
            }
        }
        """
    }
}
