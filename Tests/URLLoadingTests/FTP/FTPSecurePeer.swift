// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import LoadingTestKit
import Testing
import URLLoading

/// An FTP server over TLS in another process (Python, OpenSSL) with one fault.
///
/// It serves one file, `a.bin`.
final class FTPSecurePeer: Sendable {
    /// The server's fault.
    enum Fault: String, Sendable {
        case none
        /// Replies 502, or 534, to AUTH.
        case unknownAuth, refusedAuth
        /// Sends a cleartext reply after the 234.
        case injection
        /// Continues in cleartext after the 234.
        case clearReply
        case refusedProtection, refusedBuffer
        /// Grants PROT P, but sends data in cleartext.
        case clearData
        /// Ends the data with a FIN but no close_notify; `cutHalf` sends only half of the file and does not support SIZE.
        case cutData, cutHalf
        /// Uses another certificate for data connections.
        case otherCertificate
    }

    static let content = Data(String(repeating: "hello", count: 20_000).utf8)

    let port: Int
    private let directory: ServerDirectory
    private let process: ServerProcess

    private init(port: Int, directory: ServerDirectory, process: ServerProcess) {
        self.port = port
        self.directory = directory
        self.process = process
    }

    static func start(
        _ fault: Fault, _ identity: TestCertificates.Identity, data: TestCertificates.Identity? = nil, isImplicit: Bool = false,
        clientRoot: String? = nil
    ) async throws -> FTPSecurePeer {
        let python = try ServerProcess.program("python3", package: "python3")
        let directory = try ServerDirectory()
        let one = try directory.write((identity.chainPEM + identity.keyPEM).utf8, to: "one.pem").path
        let other = data ?? identity
        let two = try directory.write((other.chainPEM + other.keyPEM).utf8, to: "two.pem").path
        let root = try clientRoot.map { try directory.write($0.utf8, to: "root.pem").path } ?? "-"
        let program = try directory.write(Self.program.utf8, to: "server.py").path
        let (process, output) = try await ServerProcess.start(
            [python, program, one, two, fault.rawValue, isImplicit ? "1" : "", directory.file("log").path, root]
        ) { $0.contains("\n") }
        guard let port = Int(output.prefix { $0.isNumber }) else {
            process.stop()
            throw StreamPeer.Failure(description: output)
        }
        return FTPSecurePeer(port: port, directory: directory, process: process)
    }

    func stop() { process.stop(SIGKILL) }

    /// The commands of clients, as "clear WORD …" or "tls WORD …", and the server's notes.
    var orders: [String] { directory.text(of: "log").split(separator: "\n").map(String.init) }
    /// The commands that clients sent in cleartext, although they must not.
    var secrets: [String] {
        orders.filter { line in ["USER", "PASS", "CWD", "RETR", "STOR", "LIST"].contains { line.hasPrefix("clear " + $0) } }
    }

    func url(_ path: String = "/a.bin", scheme: String = "ftp", host: String = "localhost") throws -> URL {
        guard let url = URL(string: "\(scheme)://ada:secret@\(host):\(port)\(path)") else { throw URLError(.badURL) }
        return url
    }

    private static let program = #"""
        import socket, ssl, sys, threading

        one, two, fault, implicit, log, root = sys.argv[1:7]
        content = b"hello" * 20000

        def context(path):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(path)
            if root != "-":
                context.load_verify_locations(root)
                context.verify_mode = ssl.CERT_REQUIRED
            return context

        contexts = context(one), context(two)
        lock = threading.Lock()

        def note(text):
            with lock, open(log, "a") as file:
                file.write(text + "\n")

        def end(connection):
            if isinstance(connection, ssl.SSLSocket):
                try:
                    connection = connection.unwrap()
                except (ssl.SSLError, OSError):
                    pass
            connection.close()

        def serve(connection):
            is_secure, is_private, listener = False, False, None
            if implicit:
                connection, is_secure = contexts[0].wrap_socket(connection, server_side=True), True
            def say(text):
                connection.sendall(text.encode() + b"\r\n")
            def hear():
                line = b""
                while not line.endswith(b"\r\n"):
                    byte = connection.recv(1)
                    if not byte:
                        raise EOFError
                    line += byte
                return line.decode("utf-8", "replace").strip()
            def data():
                channel, _ = listener.accept()
                if is_private and fault != "clearData":
                    channel = contexts[1].wrap_socket(channel, server_side=True)
                return channel
            say("220 ready")
            while True:
                line = hear()
                note(("tls " if is_secure else "clear ") + line)
                word, _, rest = line.partition(" ")
                if word == "AUTH":
                    if fault == "unknownAuth":
                        say("502 not here")
                    elif fault == "refusedAuth":
                        say("534 policy")
                    elif fault == "injection":
                        connection.sendall(b"234 go\r\n200 fine\r\n230 you are in\r\n")
                        connection, is_secure = contexts[0].wrap_socket(connection, server_side=True), True
                    elif fault == "clearReply":
                        say("234 go")
                        say("200 fine")
                    else:
                        say("234 go")
                        connection, is_secure = contexts[0].wrap_socket(connection, server_side=True), True
                elif word == "PBSZ":
                    say("503 no" if fault == "refusedBuffer" else "200 fine")
                elif word == "PROT":
                    if fault == "refusedProtection":
                        say("536 no")
                    else:
                        is_private = rest == "P"
                        say("200 fine")
                elif word == "USER":
                    say("331 and the password?")
                elif word == "PASS":
                    say("230 come in" if rest == "secret" else "530 no")
                elif word in ("TYPE", "OPTS"):
                    say("200 fine")
                elif word == "CWD":
                    say("250 fine")
                elif word == "PWD":
                    say('257 "/"')
                elif word == "SIZE":
                    say("502 no" if fault == "cutHalf" else "213 %d" % len(content) if rest == "a.bin" else "550 no")
                elif word == "MDTM":
                    say("213 20200202020202")
                elif word == "EPSV":
                    listener = socket.create_server(("127.0.0.1", 0))
                    say("229 (|||%d|)" % listener.getsockname()[1])
                elif word in ("RETR", "LIST"):
                    say("150 go")
                    try:
                        channel = data()
                        channel.sendall(content[:50000] if fault == "cutHalf" else content)
                        if fault in ("cutData", "cutHalf"):
                            channel = socket.socket(fileno=channel.detach())
                            channel.shutdown(socket.SHUT_WR)
                            channel.close()
                        elif fault == "clearData":
                            while channel.recv(65536):
                                pass
                            channel.close()
                        else:
                            end(channel)
                    except (ssl.SSLError, OSError) as error:
                        note("data failed")
                        say("426 " + type(error).__name__)
                        continue
                    say("226 done")
                elif word == "STOR":
                    say("150 go")
                    try:
                        channel, count = data(), 0
                        while True:
                            piece = channel.recv(65536)
                            if not piece:
                                break
                            count += len(piece)
                        note("stored %d" % count)
                        end(channel)
                    except (ssl.SSLError, OSError) as error:
                        note("data failed")
                        say("426 " + type(error).__name__)
                        continue
                    say("226 done")
                elif word == "QUIT":
                    say("221 bye")
                    return end(connection)
                else:
                    say("502 not here")

        def guarded(connection):
            try:
                serve(connection)
            except (EOFError, ssl.SSLError, OSError):
                connection.close()
            note("end")

        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        print(listener.getsockname()[1], flush=True)
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=guarded, args=(connection,), daemon=True).start()
        """#
}

/// Runs a test with an ``FTPSecurePeer``, and a session that trusts the server's root and requires TLS.
func withSecureFTP(
    _ identity: TestCertificates.Identity, fault: FTPSecurePeer.Fault = .none, data: TestCertificates.Identity? = nil,
    isImplicit: Bool = false, clientRoot: String? = nil, delegate: (any URLSessionDelegate)? = nil,
    configure: (URLSessionConfiguration) -> Void = { _ in }, test: (FTPSecurePeer, URLSession) async throws -> Void
) async throws {
    let peer = try await FTPSecurePeer.start(fault, identity, data: data, isImplicit: isImplicit, clientRoot: clientRoot)
    defer { peer.stop() }
    let root = try TestCertificates.shared.get().root
    try await withSession(delegate: delegate) {
        $0.tlsTrustRoots = [root]
        $0.requiresSecureFTP = true
        configure($0)
    } test: { (session) async throws in
        try await test(peer, session)
    }
}
