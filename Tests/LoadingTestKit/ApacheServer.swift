// SPDX-License-Identifier: Apache-2.0

import Crypto
package import Foundation

/// An Apache httpd on its own loopback ports, with all its authentication methods.
///
/// Each of the following folders has a file `page.txt`, and a resource `echo` that responds to a POST with the request's body. PUT
/// creates a file.
/// - `/open/`: without authentication.
/// - `/basic/`, `/digest/`: realms "basic" and "digest" (MD5, auth); `/digest/other/` has another realm, "other".
/// - `/int/`: like `/digest/`, with nonces that are valid for one second.
/// - `/certified/`: with a client certificate, for which the server renegotiates TLS 1.2 on a port that does not ask for one.
/// - `/negotiate/`, `/negotiate-or-basic/`: only with a Kerberos realm. Basic then checks the passwords of the realm's users.
///
/// In a response, X-User contains the user, and X-Client the subject of the client certificate.
package final class ApacheServer: Sendable {
    /// A port, with its client certificate policy and protocol.
    package enum Access: Int, Sendable, CaseIterable {
        case clear, secure, optionalCertificate, requiredCertificate
        /// HTTP/2: with ALPN over TLS, or with prior knowledge in cleartext.
        case http2, http2InClear

        fileprivate var isSecure: Bool { self != .clear && self != .http2InClear }
    }

    package let directory: ServerDirectory
    private let process: ServerProcess
    private let ports: [Int]

    private init(directory: ServerDirectory, process: ServerProcess, ports: [Int]) {
        self.directory = directory
        self.process = process
        self.ports = ports
    }

    /// Starts a server that presents ``TestCertificates/valid`` and trusts client certificates of the same root.
    ///
    /// The users and passwords apply to Basic and Digest. With a Kerberos realm, the server is a service of this realm; stop the
    /// server before the realm.
    package static func start(
        _ certificates: TestCertificates, users: [String: String] = ["ada": "lovelace"], realm: KerberosRealm? = nil
    ) throws -> ApacheServer {
        let program = try ServerProcess.program("apache2", package: "apache2")
        let directory = try ServerDirectory()
        let pages = ["open", "certified", "basic", "digest", "digest/other", "int", "negotiate", "negotiate-or-basic"]
        for name in ["run"] + pages.map({ "html/\($0)" }) {
            try directory.makeFolder(name)
            if name != "run" { try directory.write("page of \(name.dropFirst(5))".utf8, to: "\(name)/page.txt") }
        }
        try directory.write(certificates.valid.chainPEM.utf8, to: "chain.pem")
        try directory.write(certificates.valid.keyPEM.utf8, to: "key.pem")
        try directory.write(certificates.rootPEM.utf8, to: "root.pem")
        let basic = users.map { "\($0):{SHA}\(Data(Insecure.SHA1.hash(data: Data($1.utf8))).base64EncodedString())\n" }
        try directory.write(basic.joined().utf8, to: "basic.users")
        let digest = users.flatMap { user, password in
            ["digest", "other"].map { "\(user):\($0):\(hexMD5("\(user):\($0):\(password)"))\n" }
        }
        try directory.write(digest.joined().utf8, to: "digest.users")
        let (process, ports) = try ServerProcess.startServer(
            ports: Access.allCases.count, sign: "resuming normal operations", in: directory.file("error.log")
        ) { ports in
            let text = configuration(directory.path, ports: ports, keytab: realm?.keytab.path)
            let file = try directory.write(text.utf8, to: "apache.conf")
            return ServerProcess.Command(
                [program, "-D", "FOREGROUND", "-d", directory.path, "-f", file.path],
                environment: realm?.environment ?? [:],
                output: directory.file("error.log")
            )
        }
        return ApacheServer(directory: directory, process: process, ports: ports)
    }

    package func port(_ access: Access = .clear) -> Int { ports[access.rawValue] }

    package func url(_ path: String, _ access: Access = .clear) -> URL {
        let text = "\(access.isSecure ? "https" : "http")://localhost:\(port(access))\(path)"
        guard let url = URL(string: text) else { preconditionFailure("'\(text)' is not a URL") }
        return url
    }

    /// The content of a file below the root, for instance after a PUT.
    package func content(at path: String) throws -> [UInt8] { Array(try Data(contentsOf: directory.file("html" + path))) }

    package var errorLog: String { directory.text(of: "error.log") }
    /// A line for each request, with the client's port, the user, the status, the method and the path.
    package var accessLog: String { directory.text(of: "access.log") }
    package func logs(_ condition: (String) -> Bool) throws -> Bool { try directory.log("access.log", says: condition) }

    package func stop() { process.stop() }

    private static func hexMD5(_ text: String) -> String {
        Insecure.MD5.hash(data: Data(text.utf8)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    // MARK: Configuration

    private static let modules = [
        "mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_basic", "auth_digest", "dav", "dav_fs",
        "headers", "http2", "mime", "reflector", "socache_shmcb", "ssl",
    ]

    private static func configuration(_ root: String, ports: [Int], keytab: String?) -> String {
        let modules = modules + (keytab == nil ? [] : ["auth_gssapi"])
        return """
            ServerName localhost
            DefaultRuntimeDir \(root)/run
            PidFile \(root)/run/pid
            \(modules.map { "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so" }.joined(separator: "\n"))
            \(geteuid() == 0 ? "User www-data\nGroup www-data" : "")
            StartServers 1
            ServerLimit 2
            ThreadsPerChild 16
            MaxRequestWorkers 32
            MinSpareThreads 1
            MaxSpareThreads 32
            MaxKeepAliveRequests 0
            KeepAliveTimeout 60
            ErrorLog \(root)/error.log
            LogLevel warn auth_digest:info mpm_event:notice
            LogFormat "%{remote}p %u %>s %m %U" journal
            TransferLog \(root)/access.log
            CustomLog \(root)/access.log journal
            DavLockDB \(root)/run/locks
            AddType text/plain .txt
            TypesConfig /dev/null
            DocumentRoot \(root)/html
            Header always set X-User "expr=%{REMOTE_USER}"
            Header always set X-Client "expr=%{SSL_CLIENT_S_DN}"
            <Directory \(root)/html>
                Dav On
                <LimitExcept GET HEAD POST PUT DELETE OPTIONS>
                    Require all denied
                </LimitExcept>
            </Directory>
            <LocationMatch "/echo$">
                SetHandler reflector
            </LocationMatch>
            <Location /basic>
                AuthType Basic
                AuthName basic
                AuthUserFile \(root)/basic.users
                Require valid-user
            </Location>
            \(digest("/digest", realm: "digest", root))
            \(digest("/digest/other", realm: "other", root))
            \(digest("/int", realm: "digest", root, more: "AuthDigestNonceLifetime 1"))
            \(keytab.map { negotiate("/negotiate", keytab: $0, "Off") + negotiate("/negotiate-or-basic", keytab: $0, "On") } ?? "")
            \(zip(Access.allCases, ports).map { host($0, port: $1, root) }.joined(separator: "\n"))

            """
    }

    private static func digest(_ path: String, realm: String, _ root: String, more: String = "") -> String {
        """
        <Location \(path)>
            AuthType Digest
            AuthName \(realm)
            AuthDigestAlgorithm MD5
            AuthDigestQop auth
            AuthDigestDomain \(path)/
            AuthDigestProvider file
            AuthUserFile \(root)/digest.users
            \(more)
            Require valid-user
        </Location>
        """
    }

    private static func negotiate(_ path: String, keytab: String, _ basic: String) -> String {
        """
        <Location \(path)>
            AuthType GSSAPI
            AuthName negotiate
            GssapiCredStore keytab:\(keytab)
            GssapiAllowedMech krb5
            GssapiBasicAuth \(basic)
            GssapiBasicAuthMech krb5
            Require valid-user
        </Location>

        """
    }

    private static func host(_ access: Access, port: Int, _ root: String) -> String {
        let verification =
            switch access {
            case .clear, .secure, .http2, .http2InClear: "none"
            case .optionalCertificate: "optional"
            case .requiredCertificate: "require"
            }
        let encryption = """
            SSLEngine on
            SSLCertificateFile \(root)/chain.pem
            SSLCertificateKeyFile \(root)/key.pem
            SSLCACertificateFile \(root)/root.pem
            SSLVerifyClient \(verification)
            SSLVerifyDepth 4
            <Location /certified>
                SSLVerifyClient require
            </Location>
            """
        let protocols =
            switch access {
            case .clear, .secure, .optionalCertificate, .requiredCertificate: "http/1.1"
            case .http2: "h2 http/1.1"
            case .http2InClear: "h2c http/1.1"
            }
        return """
            Listen 127.0.0.1:\(port)\(access.isSecure ? " https" : "")
            <VirtualHost 127.0.0.1:\(port)>
            Protocols \(protocols)
            \(access.isSecure ? encryption : "")
            </VirtualHost>
            """
    }
}
