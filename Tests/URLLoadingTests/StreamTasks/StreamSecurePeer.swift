// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit

/// A TLS server in another process (Python, OpenSSL), on two loopback ports chosen by the system: an echo, and SMTP with STARTTLS.
///
/// The echo server speaks TLS from the first byte; a relay in front of it can exchange cleartext first. When the client closes its side,
/// the echo server reports in a text whether the client sent close_notify, and closes. If a client sends `cut`, the echo server closes
/// without close_notify.
final class StreamSecurePeer: Sendable {
    let echoPort: Int
    let mailPort: Int
    private let directory: ServerDirectory
    private let process: ServerProcess

    private init(ports: [Int], directory: ServerDirectory, process: ServerProcess) {
        (echoPort, mailPort) = (ports[0], ports[1])
        self.directory = directory
        self.process = process
    }

    /// - Parameters:
    ///   - identity: The server's certificate and key.
    ///   - clientRoot: A root certificate in PEM; if given, clients must present a certificate that this root issued.
    ///   - version: The only version of TLS that the server accepts; if nil, it accepts 1.2 and later.
    /// - Returns: The listening server.
    /// - Throws: If the server did not start.
    static func start(
        _ identity: TestCertificates.Identity, clientRoot: String? = nil, version: String? = nil
    ) async throws -> StreamSecurePeer {
        let python = try ServerProcess.program("python3", package: "python3")
        let directory = try ServerDirectory()
        let chain = try directory.write(identity.chainPEM.utf8, to: "chain.pem").path
        let key = try directory.write(identity.keyPEM.utf8, to: "key.pem").path
        let root = try clientRoot.map { try directory.write($0.utf8, to: "root.pem").path } ?? "-"
        let program = try directory.write(Self.program.utf8, to: "server.py").path
        let (process, output) = try await ServerProcess.start([python, program, chain, key, root, version ?? "-"]) {
            $0.contains("\n")
        }
        let ports = output.split { !$0.isNumber }.compactMap { Int($0) }
        guard ports.count >= 2 else {
            process.stop()
            throw StreamPeer.Failure(description: output)
        }
        return StreamSecurePeer(ports: ports, directory: directory, process: process)
    }

    func stop() { process.stop(SIGKILL) }

    private static let program = #"""
        import socket, ssl, sys, threading

        chain, key, root, version = sys.argv[1:5]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)
        if root != "-":
            context.load_verify_locations(root)
            context.verify_mode = ssl.CERT_REQUIRED
        if version != "-":
            context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, version)

        def secured(connection):
            return context.wrap_socket(connection, server_side=True, suppress_ragged_eofs=False)

        def name(secure):
            for field in (secure.getpeercert() or {}).get("subject", ()):
                for kind, value in field:
                    if kind == "commonName":
                        return value
            return "none"

        def echo(connection):
            secure = secured(connection)
            while True:
                try:
                    data = secure.recv(65536)
                except ssl.SSLEOFError:
                    secure.sendall(b"[ragged]")
                    break
                if not data:
                    secure.sendall(b"[clean]")
                    break
                if data == b"cut":
                    secure.sendall(b"[cut]")
                    connection = socket.socket(fileno=secure.detach())
                    return connection.close()
                secure.sendall(data)
            try:
                secure.unwrap()
            except (ssl.SSLError, OSError):
                pass
            secure.close()

        def mail(connection):
            def say(text):
                connection.sendall(text.encode() + b"\r\n")
            def hear():
                line = b""
                while not line.endswith(b"\r\n"):
                    byte = connection.recv(1)
                    if not byte:
                        raise EOFError
                    line += byte
                return line.decode().strip()
            is_secure, lines = False, 0
            say("220 mail.test ready")
            while True:
                word, _, rest = hear().partition(" ")
                if word == "EHLO":
                    say("250-mail.test greets " + rest)
                    if is_secure:
                        say("250-" + connection.version() + " " + name(connection))
                    say("250 HELP" if is_secure else "250 STARTTLS")
                elif word == "STARTTLS" and not is_secure:
                    say("220 go ahead")
                    connection, is_secure = secured(connection), True
                elif word in ("MAIL", "RCPT"):
                    say("250 ok")
                elif word == "DATA":
                    say("354 end with a dot")
                    while hear() != ".":
                        lines += 1
                    say("250 took %d lines" % lines)
                elif word == "QUIT":
                    say("221 bye")
                    if is_secure:
                        try:
                            connection.unwrap()
                        except (ssl.SSLError, OSError):
                            pass
                    return connection.close()
                else:
                    say("500 what?")

        def guarded(serve, connection):
            try:
                serve(connection)
            except (EOFError, ssl.SSLError, OSError):
                connection.close()

        def listen(serve):
            listener = socket.create_server(("127.0.0.1", 0), backlog=64)
            def accept():
                while True:
                    connection, _ = listener.accept()
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=guarded, args=(serve, connection), daemon=True).start()
            threading.Thread(target=accept).start()
            return listener.getsockname()[1]

        print(listen(echo), listen(mail), flush=True)
        """#
}

/// Runs a test with a ``StreamSecurePeer``.
func withStreamSecurePeer(
    _ identity: TestCertificates.Identity, clientRoot: String? = nil, version: String? = nil,
    test: (StreamSecurePeer) async throws -> Void
) async throws {
    let peer = try await StreamSecurePeer.start(identity, clientRoot: clientRoot, version: version)
    defer { peer.stop() }
    try await test(peer)
}

/// Runs a test with `openssl s_server -rev`, which sends every line back reversed.
func withOpenSSLReverse(
    _ identity: TestCertificates.Identity, _ options: [String] = [], test: (_ port: Int) async throws -> Void
) async throws {
    let folder = try TemporaryDirectory()
    let chain = try folder.write(identity.chainPEM.utf8, to: "chain.pem").path
    let key = try folder.write(identity.keyPEM.utf8, to: "key.pem").path
    let program = try ServerProcess.program("openssl", package: "openssl")
    let arguments = ["s_server", "-accept", "127.0.0.1:0", "-rev", "-cert", chain, "-cert_chain", chain, "-key", key]
    let (process, output) = try await ServerProcess.start([program] + arguments + options) {
        $0.contains("ACCEPT 127.0.0.1:") && $0.hasSuffix("\n")
    }
    defer { process.stop() }
    guard let port = output.firstMatch(of: /ACCEPT 127\.0\.0\.1:(\d+)/).flatMap({ Int($0.1) }) else {
        throw StreamPeer.Failure(description: output)
    }
    try await test(port)
}
