// SPDX-License-Identifier: Apache-2.0

package import Foundation

#if canImport(Glibc)
import Glibc
#endif

/// gtlsserver, the server of ngtcp2 with GnuTLS, on its own loopback port: only HTTP/3.
///
/// It serves the files below its root, and discards the bodies of requests.
package final class GTLSServer: Sendable {
    package let directory: TemporaryDirectory
    package let port: Int
    private let process: ServerProcess

    private init(directory: TemporaryDirectory, port: Int, process: ServerProcess) {
        self.directory = directory
        self.port = port
        self.process = process
    }

    /// Starts a server with options of gtlsserver.
    package static func start(_ identity: TestCertificates.Identity, options: [String] = []) throws -> GTLSServer {
        let program = try ServerProcess.program("gtlsserver", package: "ngtcp2-server")
        let directory = try TemporaryDirectory()
        try FileManager.default.createDirectory(at: directory.file("html"), withIntermediateDirectories: true)
        let key = try directory.write(identity.keyPEM.utf8, to: "key.pem").path
        let chain = try directory.write(identity.chainPEM.utf8, to: "chain.pem").path
        let (process, port) = try ServerProcess.startQUICServer(in: directory.file("log")) { port in
            ServerProcess.Command(
                [program, "-q", "-d", directory.path + "/html"] + options + ["127.0.0.1", "\(port)", key, chain],
                output: directory.file("log"))
        }
        return GTLSServer(directory: directory, port: port, process: process)
    }

    /// Writes a file below the root.
    package func put(_ bytes: some Sequence<UInt8>, at path: String) throws { try directory.write(bytes, to: "html" + path) }

    package func url(_ path: String) -> URL {
        guard let url = URL(string: "https://localhost:\(port)\(path)") else { preconditionFailure("'\(path)' is not a path") }
        return url
    }

    /// Stops the server for a while, so that it reads and sends nothing.
    package func pause() { process.signal(SIGSTOP) }
    package func resume() { process.signal(SIGCONT) }

    package func stop() { process.stop(SIGKILL) }

    deinit { stop() }
}
