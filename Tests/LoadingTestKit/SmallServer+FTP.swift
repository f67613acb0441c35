// SPDX-License-Identifier: Apache-2.0

package import Foundation

#if canImport(Glibc)
import Glibc
#endif

extension SmallServer {
    /// The options of an FTP server.
    package struct FTPOptions: Sendable {
        /// The certificate and key; nil disables TLS.
        package var identity: TestCertificates.Identity?
        /// Whether TLS begins with the first byte; only pyftpdlib has this option.
        package var isImplicit = false
        /// Whether a data connection must resume the control connection's TLS session; only vsftpd and ProFTPD have this option.
        package var demandsReuse = false
        /// Whether pyftpdlib allows anonymous logins; vsftpd allows only anonymous logins.
        package var allowsAnonymous = true
        /// Bytes per second for each connection; nil means no limit.
        package var rate: Int?

        package init(identity: TestCertificates.Identity? = nil) { self.identity = identity }
    }

    /// The folder that an FTP server serves, which clients can write to.
    package var folder: URL { directory.file("root") }

    /// The FTP server's log of received commands.
    package var journal: String {
        directory.text(of: "commands.log") + directory.text(of: "settings/commands.log") + directory.text(of: "output.log")
    }

    /// Writes a file to an FTP server's folder, with a modification date in the past.
    package func put(
        _ bytes: some Sequence<UInt8>, at path: String, modified: Date = Date(timeIntervalSince1970: 1_580_702_706)
    ) throws {
        let file = folder.appendingPathComponent(path)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(bytes).write(to: file)
        try FileManager.default.setAttributes([.modificationDate: modified], ofItemAtPath: file.path)
    }

    /// vsftpd, for anonymous users, with write permission.
    package static func vsftpd(_ options: FTPOptions = FTPOptions()) throws -> SmallServer {
        let program = try ServerProcess.program("vsftpd", package: "vsftpd")
        return try start { port, directory in
            let root = try makeRoot(directory)
            try directory.makeFolder("empty")
            var settings = """
                listen=YES
                listen_address=127.0.0.1
                listen_port=\(port)
                background=NO
                run_as_launching_user=YES
                anonymous_enable=YES
                anon_root=\(root)
                local_enable=NO
                write_enable=YES
                anon_upload_enable=YES
                anon_other_write_enable=YES
                anon_umask=022
                anon_world_readable_only=NO
                anon_max_rate=\(options.rate ?? 0)
                secure_chroot_dir=\(directory.file("empty").path)
                seccomp_sandbox=NO
                xferlog_enable=YES
                xferlog_std_format=NO
                log_ftp_protocol=YES
                vsftpd_log_file=\(directory.file("commands.log").path)

                """
            if let identity = options.identity {
                let (chain, key) = try write(identity, directory)
                settings += """
                    ssl_enable=YES
                    allow_anon_ssl=YES
                    force_anon_data_ssl=NO
                    force_anon_logins_ssl=NO
                    rsa_cert_file=\(chain)
                    rsa_private_key_file=\(key)
                    ssl_ciphers=HIGH
                    require_ssl_reuse=\(options.demandsReuse ? "YES" : "NO")

                    """
            }
            return [program, try directory.write(settings.utf8, to: "vsftpd.conf").path]
        }
    }

    /// ProFTPD, for the user "ada" with the password "secret".
    package static func proftpd(_ options: FTPOptions = FTPOptions()) throws -> SmallServer {
        let program = try ServerProcess.buildFolderProgram("proftpd/usr/sbin/proftpd")
        let modules = URL(fileURLWithPath: program).deletingLastPathComponent().appendingPathComponent("../lib/proftpd")
            .standardized.path
        return try start { port, directory in
            let root = try makeRoot(directory)
            // ProFTPD rejects files in folders that other users can write to.
            try directory.makeFolder("settings")
            chmod(directory.file("settings").path, 0o700)
            let user = NSUserName()
            let hash = "$1$salt$ez2vlPGdaLYkJam5pWs/Y1"
            let users = try directory.write(
                "ada:\(hash):\(getuid()):\(getgid())::\(root):/bin/false\n".utf8, to: "settings/users")
            let groups = try directory.write("\(user):x:\(getgid()):\n".utf8, to: "settings/groups")
            for file in [users, groups] { chmod(file.path, 0o600) }
            var settings = """
                ServerName test
                ServerType standalone
                DefaultAddress 127.0.0.1
                Port \(port)
                UseIPv6 off
                User \(user)
                Group \(user)
                ModulePath \(modules)
                LoadModule mod_tls.c
                AuthOrder mod_auth_file.c
                AuthUserFile \(users.path)
                AuthGroupFile \(groups.path)
                RequireValidShell off
                RootLogin on
                PidFile \(directory.file("settings/pid").path)
                ScoreboardFile \(directory.file("settings/score").path)
                SystemLog \(directory.file("settings/system.log").path)
                DelayEngine off
                WtmpLog off
                TransferLog none
                ExtendedLog \(directory.file("settings/commands.log").path) ALL
                AllowOverwrite on
                AllowStoreRestart on
                TimesGMT on

                """
            if let rate = options.rate { settings += "TransferRate RETR,STOR \(Double(rate) / 1_024)\n" }
            if let identity = options.identity {
                let (chain, key) = try write(identity, directory)
                settings += """
                    TLSEngine on
                    TLSRSACertificateFile \(chain)
                    TLSRSACertificateKeyFile \(key)
                    TLSCertificateChainFile \(chain)
                    TLSRequired off
                    \(options.demandsReuse ? "" : "TLSOptions NoSessionReuseRequired")

                    """
            }
            return [program, "-n", "-q", "-c", try directory.write(settings.utf8, to: "settings/proftpd.conf").path]
        }
    }

    /// pyftpdlib, for the user "ada" with the password "secret", and for anonymous users.
    package static func pyftpdlib(_ options: FTPOptions = FTPOptions()) throws -> SmallServer {
        let program = try ServerProcess.program("python3", package: "python3")
        return try start { port, directory in
            let root = try makeRoot(directory)
            var chain = ""
            if let identity = options.identity {
                chain = try directory.write((identity.chainPEM + identity.keyPEM).utf8, to: "both.pem").path
            }
            let script = try directory.write(pythonServer.utf8, to: "server.py").path
            return [
                program, script, "\(port)", root, chain, options.isImplicit ? "1" : "", options.allowsAnonymous ? "1" : "",
                "\(options.rate ?? 0)", "127.0.0.1",
            ]
        }
    }

    private static func makeRoot(_ directory: ServerDirectory) throws -> String {
        try directory.makeFolder("root")
        return directory.file("root").path
    }

    /// Arguments: port, folder, certificate and key, implicit TLS, anonymous users, bytes per second, address.
    private static let pythonServer = """
        import logging, sys
        from pyftpdlib.authorizers import DummyAuthorizer
        from pyftpdlib.handlers import FTPHandler, DTPHandler, ThrottledDTPHandler
        from pyftpdlib.servers import FTPServer

        port, root, chain, implicit, anonymous, rate, address = sys.argv[1:8]
        logging.basicConfig(level=logging.DEBUG, format="%(message)s")
        authorizer = DummyAuthorizer()
        authorizer.add_user("ada", "secret", root, perm="elradfmwMT")
        if anonymous:
            authorizer.add_anonymous(root, perm="elrw")
        if chain:
            from pyftpdlib.handlers import TLS_FTPHandler, TLS_DTPHandler
            base = TLS_FTPHandler
        else:
            base = FTPHandler

        class Handler(base):
            pass

        if chain:
            Handler.certfile = chain
            Handler.tls_control_required = True
            Handler.tls_data_required = True
            if implicit:
                Handler.handle = lambda self: self.secure_connection(self.ssl_context)
                Handler.handle_ssl_established = lambda self: base.handle(self)
        if int(rate):
            kind = Handler.dtp_handler
            class Throttled(ThrottledDTPHandler, kind):
                read_limit = write_limit = int(rate)
                auto_sized_buffers = False
                ac_in_buffer_size = ac_out_buffer_size = max(1024, int(rate) // 16)
            if not chain:
                Handler.dtp_handler = Throttled
        Handler.authorizer = authorizer
        Handler.banner = "ready"
        FTPServer((address, int(port)), Handler).serve_forever()
        """
}
