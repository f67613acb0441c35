// SPDX-License-Identifier: Apache-2.0

package import Foundation

#if canImport(Glibc)
import Glibc
#endif

/// A server on a loopback port that requires NTLM, with an independent implementation (pyspnego).
///
/// The first component of the path selects the schemes: `/ntlm`, `/both` (NTLM, and Negotiate with NTLM inside), `/ntlm-or-basic`,
/// `/closing` (closes the connection after the first 401), `/bound` (only over TLS: requires the channel binding). All other paths
/// need no authentication. An authenticated connection stays authenticated. The body of a response contains the request's method
/// and path, and the length and SHA-256 of the request's body. X-User contains the user, and X-Connection the number of the
/// connection.
package final class NTLMServer: Sendable {
    package static let domain = "LOADING"

    package let port: Int
    private let isSecure: Bool
    private let directory: ServerDirectory
    private let process: ServerProcess

    private init(port: Int, isSecure: Bool, directory: ServerDirectory, process: ServerProcess) {
        self.port = port
        self.isSecure = isSecure
        self.directory = directory
        self.process = process
    }

    /// Starts a server for these users, with TLS if there is an identity.
    package static func start(
        users: [String: String] = ["ada": "lovelace"], _ identity: TestCertificates.Identity? = nil
    ) throws -> NTLMServer {
        let python = try SpnegoPython.interpreter()
        let directory = try ServerDirectory()
        let environment = try SpnegoPython.write(users, domain: domain, in: directory)
        var arguments = [python, try directory.write(SpnegoPython.server.utf8, to: "server.py").path]
        if let identity {
            arguments.append(try directory.write(identity.chainPEM.utf8, to: "chain.pem").path)
            arguments.append(try directory.write(identity.keyPEM.utf8, to: "key.pem").path)
        }
        let socket = try ServerProcess.listeningSocket()
        defer { Glibc.close(socket.descriptor) }
        let process = try ServerProcess.start(
            ServerProcess.Command(
                arguments, environment: environment, output: .file(directory.file("log")), sockets: [socket.descriptor]
            )
        )
        return NTLMServer(port: socket.port, isSecure: identity != nil, directory: directory, process: process)
    }

    package func url(_ path: String) -> URL {
        let text = "\(isSecure ? "https" : "http")://localhost:\(port)\(path)"
        guard let url = URL(string: text) else { preconditionFailure("'\(text)' is not a URL") }
        return url
    }

    /// The reasons for refusals.
    package var log: String { directory.text(of: "log") }

    package func stop() { process.stop() }
}
