//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#endif

/// A real nginx on loopback ports of its own, with files of its own.
///
/// The listening sockets are made here and handed down (nginx takes them over by the variable NGINX, as in its binary upgrade), so
/// that a connection is accepted from the first moment and no port is guessed.
///
/// Below the root: every file by its path; `/gzip/` compresses; `/slow/` sends 256 KiB/s; `/upload/` takes PUT and DELETE; `/old`
/// redirects to `/new`; `/basic/` wants to know that it is ada, by Basic.
package final class NginxServer: Sendable {
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

    package static func start(_ identity: TestCertificates.Identity) throws -> NginxServer {
        let program = try ServerProcess.program("nginx", package: "nginx-light")
        let directory = try TemporaryDirectory()
        for name in ["html/gzip", "html/slow", "html/upload", "html/basic", "temp"] {
            try FileManager.default.createDirectory(at: directory.file(name), withIntermediateDirectories: true)
        }
        let clear = try ServerProcess.listeningSocket()
        let secure = try ServerProcess.listeningSocket()
        defer {
            Glibc.close(clear.descriptor)
            Glibc.close(secure.descriptor)
        }
        try directory.write(identity.chainPEM.utf8, to: "chain.pem")
        try directory.write(identity.keyPEM.utf8, to: "key.pem")
        try directory.write("ada:{PLAIN}lovelace\n".utf8, to: "users")
        let text = configuration(directory.path, port: clear.port, securePort: secure.port)
        let file = try directory.write(text.utf8, to: "nginx.conf")
        let process = try ServerProcess.start(
            ServerProcess.Order(
                [program, "-p", directory.path, "-c", file.path, "-e", directory.path + "/error.log"],
                environment: ["NGINX": "3;4;"], output: .nothing, sockets: [clear.descriptor, secure.descriptor]))
        return NginxServer(directory: directory, port: clear.port, securePort: secure.port, process: process)
    }

    /// Puts a file below the root.
    package func put(_ bytes: some Sequence<UInt8>, at path: String) throws {
        try directory.write(bytes, to: "html" + path)
    }

    /// What a file below the root holds, as after a PUT.
    package func content(at path: String) throws -> [UInt8] { Array(try Data(contentsOf: directory.file("html" + path))) }

    package var errorLog: String { (try? String(contentsOf: directory.file("error.log"), encoding: .utf8)) ?? "" }

    package func url(_ path: String, secure: Bool = false) -> URL {
        let text = secure ? "https://localhost:\(securePort)\(path)" : "http://127.0.0.1:\(port)\(path)"
        guard let url = URL(string: text) else { preconditionFailure("'\(text)' is not a URL") }
        return url
    }

    package func stop() { process.stop() }

    deinit { stop() }

    private static func configuration(_ root: String, port: Int, securePort: Int) -> String {
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
            keepalive_requests 1000000;
            types { text/plain txt; application/json json; application/octet-stream bin; }
            default_type application/octet-stream;
            autoindex off;
            server {
                listen 127.0.0.1:\(port);
                listen 127.0.0.1:\(securePort) ssl;
                ssl_certificate \(root)/chain.pem;
                ssl_certificate_key \(root)/key.pem;
                ssl_protocols TLSv1.2 TLSv1.3;
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
