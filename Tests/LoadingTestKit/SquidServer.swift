// SPDX-License-Identifier: Apache-2.0

import Foundation

#if canImport(Glibc)
import Glibc
#endif

/// A squid on a loopback port: a proxy for http and, by CONNECT, for everything else.
package final class SquidServer: Sendable {
    /// An authentication scheme; the realm of Basic and Digest is "squid".
    package enum Scheme: Sendable {
        case basic, digest
        /// NTLM, verified with pyspnego.
        case ntlm
        /// Negotiate, verified with squid's own helper; needs a Kerberos realm.
        case negotiate
    }

    package let port: Int
    /// The prefix of the names of squid's shared memory segments.
    ///
    /// No other squid on the machine may use this prefix, not even after this squid was killed.
    package let serviceName: String
    private let directory: ServerDirectory
    private let process: ServerProcess
    /// The process that squid's NTLM helper asks, because the helper runs as another user without access to pyspnego.
    private let judge: ServerProcess?

    private init(port: Int, serviceName: String, directory: ServerDirectory, process: ServerProcess, judge: ServerProcess?) {
        self.port = port
        self.serviceName = serviceName
        self.directory = directory
        self.process = process
        self.judge = judge
    }

    /// Starts a proxy that offers these schemes, in this order; without schemes, it needs no authentication.
    ///
    /// The users and passwords apply to all schemes but Negotiate, which needs the Kerberos realm; stop the realm after the
    /// proxy. With an identity, the proxy uses TLS.
    package static func start(
        _ schemes: [Scheme] = [], users: [String: String] = ["ada": "lovelace"], realm: KerberosRealm? = nil,
        identity: TestCertificates.Identity? = nil
    ) throws -> SquidServer {
        let program = try ServerProcess.program("squid", package: "squid")
        let directory = try ServerDirectory()
        // The name may only consist of letters and digits, at most 32 of them.
        let serviceName = "tests" + UUID().uuidString.filter { $0 != "-" }.prefix(20)
        try directory.makeFolder("logs")
        if let identity {
            try directory.write(identity.chainPEM.utf8, to: "chain.pem")
            try directory.write(identity.keyPEM.utf8, to: "key.pem")
        }
        let judge = schemes.contains(.ntlm) ? try startJudge(users, in: directory) : nil
        var settings = ""
        for scheme in schemes {
            let program = try helper(scheme, users: users, realm: realm, judge: judge?.port, in: directory)
            let name = "\(scheme)"
            settings += "auth_param \(name) program \(program)\nauth_param \(name) children 4 startup=1 idle=1\n"
            switch scheme {
            case .basic: settings += "auth_param basic realm squid\nauth_param basic utf8 on\n"
            case .digest: settings += "auth_param digest realm squid\n"
            case .ntlm, .negotiate: settings += "auth_param \(name) keep_alive on\n"
            }
        }
        settings += schemes.isEmpty ? "http_access allow all\n" : "acl known proxy_auth REQUIRED\nhttp_access allow known\n"
        let (process, ports) = try ServerProcess.startServer(
            ports: 1, sign: "Accepting HTTP\(identity == nil ? "" : "S") Socket connections", in: directory.file("logs/cache.log")
        ) { [settings] ports in
            let file = try directory.write(
                (fixed(directory.path, name: serviceName, port: ports[0], isSecure: identity != nil) + settings).utf8,
                to: "squid.conf")
            return ServerProcess.Command(
                [program, "-N", "-n", serviceName, "-f", file.path], environment: realm?.environment ?? [:],
                output: directory.file("output.log")
            )
        }
        return SquidServer(
            port: ports[0], serviceName: serviceName, directory: directory, process: process, judge: judge?.process)
    }

    /// The access log: a line for each request, with its status, method, destination and user.
    package var accessLog: String { directory.text(of: "logs/access.log") }
    package func logs(_ text: String) throws -> Bool { try directory.log("logs/access.log") { $0.contains(text) } }
    package var errorLog: String { directory.text(of: "logs/cache.log") }

    /// Kills the program: an orderly shutdown takes seconds.
    package func stop() {
        process.stop(SIGKILL)
        judge?.stop()
        for name in sharedMemory { unlink("/dev/shm/" + name) }
    }

    /// The shared memory segments of this proxy, even after it was killed.
    package var sharedMemory: [String] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/dev/shm")) ?? []
        return all.filter { $0.hasPrefix(serviceName + "-") }
    }

    private static func startJudge(
        _ users: [String: String], in directory: ServerDirectory
    ) throws -> (process: ServerProcess, port: Int) {
        let program = try directory.write(SpnegoPython.judge.utf8, to: "judge.py")
        let socket = try ServerProcess.listeningSocket()
        defer { close(socket.descriptor) }
        let process = try ServerProcess.start(
            ServerProcess.Command(
                [try SpnegoPython.interpreter(), program.path],
                environment: try SpnegoPython.write(users, domain: NTLMServer.domain, in: directory),
                output: .file(directory.file("judge.log")), sockets: [socket.descriptor]
            )
        )
        return (process, socket.port)
    }

    private static func fixed(_ root: String, name: String, port: Int, isSecure: Bool) -> String {
        """
        \(isSecure ? "https_port 127.0.0.1:\(port) tls-cert=\(root)/chain.pem tls-key=\(root)/key.pem" : "http_port 127.0.0.1:\(port)")
        visible_hostname localhost
        unique_hostname \(name)
        pid_filename none
        cache deny all
        cache_log \(root)/logs/cache.log
        logformat journal %>Hs %rm %ru %un
        access_log stdio:\(root)/logs/access.log journal
        buffered_logs off
        cache_store_log none
        coredump_dir \(root)/logs
        netdb_filename none
        pinger_enable off
        shutdown_lifetime 0 seconds
        dns_nameservers 127.0.0.1
        max_filedescriptors 1024

        """
    }

    /// The command that squid runs to verify credentials.
    private static func helper(
        _ scheme: Scheme, users: [String: String], realm: KerberosRealm?, judge: Int?, in directory: ServerDirectory
    ) throws -> String {
        let python = try ServerProcess.program("python3", package: "python3")
        switch scheme {
        case .basic:
            let lines = users.map { "\($0) \($1)\n" }
            let list = try directory.write(lines.joined().utf8, to: "basic.users")
            let script = """
                import sys, urllib.parse
                known = [line.strip() for line in open("\(list.path)", encoding="utf-8")]
                for line in sys.stdin:
                    name = " ".join(urllib.parse.unquote(part) for part in line.strip().split(" ")[:2])
                    print("OK" if name in known else "ERR", flush=True)

                """
            return "\(python) \(try directory.write(script.utf8, to: "basic.py").path)"
        case .digest:
            let lines = users.map { "\($0):\($1)\n" }
            let list = try directory.write(lines.joined().utf8, to: "digest.users")
            return "/usr/lib/squid/digest_file_auth \(list.path)"
        case .ntlm:
            let script = """
                import socket, sys
                judge = socket.create_connection(("127.0.0.1", \(judge ?? 0))).makefile("rw")
                for line in sys.stdin:
                    judge.write(line)
                    judge.flush()
                    print(judge.readline().strip(), flush=True)

                """
            return "\(python) \(try directory.write(script.utf8, to: "ntlm.py").path)"
        case .negotiate:
            guard let realm else { throw ServerProcess.Failure(description: "Negotiate needs a Kerberos realm") }
            return "/usr/lib/squid/negotiate_kerberos_auth -k \(realm.keytab.path) -s GSS_C_NO_NAME"
        }
    }
}
