// SPDX-License-Identifier: Apache-2.0

import Foundation

#if canImport(Glibc)
import Glibc
#endif

/// Small independent proxies, mail servers and FTP servers, each on a loopback port that the system chooses.
package final class SmallServer: Sendable {
    package let port: Int
    let directory: ServerDirectory
    private let process: ServerProcess

    private init(port: Int, directory: ServerDirectory, process: ServerProcess) {
        self.port = port
        self.directory = directory
        self.process = process
    }

    package func stop() { process.stop(SIGKILL) }

    /// SOCKS 5, with a password if there is a user.
    package static func microsocks(user: String? = nil, password: String = "") throws -> SmallServer {
        let program = try ServerProcess.program("microsocks", package: "microsocks")
        return try start { port, _ in
            [program, "-i", "127.0.0.1", "-p", "\(port)"] + (user.map { ["-u", $0, "-P", password] } ?? [])
        }
    }

    /// SOCKS 4, 4a and 5, without passwords.
    package static func dante() throws -> SmallServer {
        let program = try ServerProcess.program("danted", package: "dante-server")
        return try start { port, directory in
            let settings = """
                logoutput: \(directory.path)/dante.log
                internal: 127.0.0.1 port = \(port)
                external: lo
                clientmethod: none
                socksmethod: none
                client pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }
                socks pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }

                """
            return [program, "-f", try directory.write(settings.utf8, to: "danted.conf").path, "-p", "\(directory.path)/pid"]
        }
    }

    /// An HTTP proxy.
    package static func tinyproxy() throws -> SmallServer {
        let program = try ServerProcess.program("tinyproxy", package: "tinyproxy-bin")
        return try start { port, directory in
            let settings = "Port \(port)\nListen 127.0.0.1\nTimeout 60\nMaxClients 20\nAllow 127.0.0.1\n"
            return [program, "-d", "-c", try directory.write(settings.utf8, to: "tinyproxy.conf").path]
        }
    }

    /// An SMTP server that requires STARTTLS.
    package static func smtp(_ identity: TestCertificates.Identity) throws -> SmallServer {
        let program = try ServerProcess.program("aiosmtpd", package: "python3-aiosmtpd")
        return try start { port, directory in
            let (chain, key) = try write(identity, directory)
            return [program, "-n", "-l", "127.0.0.1:\(port)", "--tlscert", chain, "--tlskey", key]
        }
    }

    /// An IMAP server that requires STARTTLS.
    package static func imap(_ identity: TestCertificates.Identity) throws -> SmallServer {
        let program = try ServerProcess.program("dovecot", package: "dovecot-imapd")
        let user = NSUserName()
        return try start { port, directory in
            let (chain, key) = try write(identity, directory)
            let settings = """
                base_dir = \(directory.path)/base
                state_dir = \(directory.path)/base
                log_path = /dev/stderr
                default_internal_user = \(user)
                default_internal_group =
                default_login_user = \(user == "root" ? "nobody" : user)
                protocols = imap
                ssl = required
                ssl_cert = <\(chain)
                ssl_key = <\(key)
                service imap-login {
                  chroot =
                  inet_listener imap {
                    address = 127.0.0.1
                    port = \(port)
                  }
                  inet_listener imaps {
                    port = 0
                  }
                }
                service anvil {
                  chroot =
                }
                passdb {
                  driver = static
                  args = password=secret
                }
                userdb {
                  driver = static
                  args = uid=\(getuid()) gid=\(getgid()) home=\(directory.path)
                }

                """
            return [program, "-F", "-c", try directory.write(settings.utf8, to: "dovecot.conf").path]
        }
    }

    static func write(_ identity: TestCertificates.Identity, _ directory: ServerDirectory) throws -> (String, String) {
        (
            try directory.write(identity.chainPEM.utf8, to: "chain.pem").path,
            try directory.write(identity.keyPEM.utf8, to: "key.pem").path
        )
    }

    /// Starts a program that does not report when it is ready; a shell loop detects that, by connecting to the port.
    ///
    /// The loop does not run in a child of the program, because some programs end when an unknown child ends.
    static func start(_ arguments: (Int, ServerDirectory) throws -> [String]) throws -> SmallServer {
        let directory = try ServerDirectory()
        let shell = try ServerProcess.program("bash", package: "bash")
        let (process, ports) = try ServerProcess.startServer(ports: 1, sign: "ready", in: directory.file("sign.log")) { ports in
            let wait =
                "for ((i = 0; i < 1500; i++)); do (: < /dev/tcp/127.0.0.1/\(ports[0])) 2> /dev/null"
                + " && echo ready > \"$0\" && break; sleep 0.02; done"
            return ServerProcess.Command(
                [shell, "-c", "( (\(wait)) & ); exec \"$@\"", directory.file("sign.log").path]
                    + (try arguments(ports[0], directory)),
                output: directory.file("output.log")
            )
        }
        return SmallServer(port: ports[0], directory: directory, process: process)
    }
}
