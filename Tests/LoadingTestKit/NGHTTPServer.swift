// SPDX-License-Identifier: Apache-2.0

package import Foundation

/// nghttpd, the server of nghttp2, on its own loopback port: only HTTP/2, by ALPN over TLS or with prior knowledge in cleartext.
///
/// It serves the files below its root; with `--echo-upload` it responds with the request's body.
package final class NGHTTPServer: Sendable {
    package let directory: TemporaryDirectory
    package let port: Int
    private let isSecure: Bool
    private let process: ServerProcess

    private init(directory: TemporaryDirectory, port: Int, isSecure: Bool, process: ServerProcess) {
        self.directory = directory
        self.port = port
        self.isSecure = isSecure
        self.process = process
    }

    /// Starts a server with options of nghttpd; without an identity, it does not use TLS.
    package static func start(
        _ identity: TestCertificates.Identity? = nil, options: [String] = []
    ) throws -> NGHTTPServer {
        let program = try ServerProcess.program("nghttpd", package: "nghttp2-server")
        let directory = try TemporaryDirectory()
        try FileManager.default.createDirectory(at: directory.file("html"), withIntermediateDirectories: true)
        var arguments = ["-v", "-a", "127.0.0.1", "-d", directory.path + "/html"] + options
        var files: [String] = []
        if let identity {
            files = [
                try directory.write(identity.keyPEM.utf8, to: "key.pem").path,
                try directory.write(identity.chainPEM.utf8, to: "chain.pem").path,
            ]
        } else {
            arguments.append("--no-tls")
        }
        let (process, ports) = try ServerProcess.startServer(ports: 1, sign: "listen ", in: directory.file("log")) { ports in
            ServerProcess.Command([program] + arguments + ["\(ports[0])"] + files, output: directory.file("log"))
        }
        return NGHTTPServer(directory: directory, port: ports[0], isSecure: identity != nil, process: process)
    }

    /// Writes a file below the root.
    package func put(_ bytes: some Sequence<UInt8>, at path: String) throws {
        try directory.write(bytes, to: "html" + path)
    }

    package func url(_ path: String) -> URL {
        let text = "\(isSecure ? "https" : "http")://localhost:\(port)\(path)"
        guard let url = URL(string: text) else { preconditionFailure("'\(text)' is not a URL") }
        return url
    }

    /// The log of the frames that the server received and sent.
    package var log: String { (try? String(contentsOf: directory.file("log"), encoding: .utf8)) ?? "" }

    package func stop() { process.stop() }

    deinit { stop() }
}
