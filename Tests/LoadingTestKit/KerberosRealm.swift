// SPDX-License-Identifier: Apache-2.0

package import Foundation

/// A Kerberos realm for tests: an MIT KDC on loopback, with users, services and their keytab.
///
/// The Kerberos library reads KRB5_CONFIG and the other variables of ``environment`` on first use, so a process needs the variables
/// from its start. Tests therefore run the command-line tool, or curl, with these variables.
package final class KerberosRealm: Sendable {
    package static let name = "URLLOADING.TEST"

    package let directory: ServerDirectory
    /// The keys of HTTP/localhost and HTTP/127.0.0.1.
    package let keytab: URL
    private let kdc: ServerProcess

    private init(directory: ServerDirectory, keytab: URL, kdc: ServerProcess) {
        self.directory = directory
        self.keytab = keytab
        self.kdc = kdc
    }

    /// Starts a KDC with these users, whose passwords must not contain spaces or quotes.
    package static func start(users: [String: String] = ["ada": "lovelace"]) throws -> KerberosRealm {
        let directory = try ServerDirectory()
        let keytab = directory.file("services.keytab")
        let output = directory.file("kdc.log")
        let environment = environment(directory)
        let daemon = try ServerProcess.program("krb5kdc", package: "krb5-kdc")
        let database = try ServerProcess.program("kdb5_util", package: "krb5-kdc")
        let administration = try ServerProcess.program("kadmin.local", package: "krb5-admin-server")
        try writeConfiguration(directory, port: 0)
        try ServerProcess.run(
            ServerProcess.Command(
                [database, "-r", name, "-P", "master", "create", "-s"], environment: environment, output: output
            )
        )
        var commands = users.map { "addprinc -pw \($1) \($0)" }
        for service in ["HTTP/localhost", "HTTP/127.0.0.1"] {
            commands += ["addprinc -randkey \(service)", "ktadd -k \(keytab.path) \(service)"]
        }
        let input = try directory.write(commands.joined(separator: "\n").utf8, to: "commands")
        try ServerProcess.run(
            ServerProcess.Command(
                [administration, "-r", name], environment: environment, input: input, output: output
            )
        )
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: keytab.path)
        let (kdc, _) = try ServerProcess.startServer(ports: 1, sign: "krb5kdc: starting...", in: output) { ports in
            try writeConfiguration(directory, port: ports[0])
            return ServerProcess.Command([daemon, "-n", "-r", name], environment: environment, output: output)
        }
        return KerberosRealm(directory: directory, keytab: keytab, kdc: kdc)
    }

    /// The environment of a client without a ticket.
    package var environment: [String: String] { Self.environment(directory) }

    /// Obtains a ticket for a user with kinit; returns the environment of a client that has this ticket.
    package func ticket(for user: String, password: String, lifetime: String = "1h") throws -> [String: String] {
        let variables = environment.merging(["KRB5CCNAME": "FILE:\(directory.path)/tickets-\(user)"]) { $1 }
        let program = try ServerProcess.program("kinit", package: "krb5-user")
        let input = try directory.write("\(password)\n".utf8, to: "password")
        defer { try? FileManager.default.removeItem(at: input) }
        try ServerProcess.run(
            ServerProcess.Command(
                [program, "-l", lifetime, "\(user)@\(Self.name)"], environment: variables, input: input,
                output: directory.file("kinit.log")
            )
        )
        return variables
    }

    /// The KDC's log of granted and refused tickets.
    package var log: String { directory.text(of: "kdc.log") }

    package func stop() { kdc.stop() }

    private static func environment(_ directory: ServerDirectory) -> [String: String] {
        [
            "KRB5_CONFIG": "\(directory.path)/krb5.conf",
            "KRB5_KDC_PROFILE": "\(directory.path)/kdc.conf",
            "KRB5CCNAME": "FILE:\(directory.path)/no-tickets",
            // This turns off the replay cache, a file that the servers would otherwise write outside this directory.
            "KRB5RCACHENAME": "none:",
        ]
    }

    private static func writeConfiguration(_ directory: ServerDirectory, port: Int) throws {
        let client = """
            [libdefaults]
                default_realm = \(name)
                dns_lookup_kdc = false
                dns_lookup_realm = false
                dns_canonicalize_hostname = false
                rdns = false
                udp_preference_limit = 1
                qualify_shortname = ""
            [realms]
                \(name) = {
                    kdc = 127.0.0.1:\(port)
                }
            [domain_realm]
                localhost = \(name)
                127.0.0.1 = \(name)

            """
        try directory.write(client.utf8, to: "krb5.conf")
        let server = """
            [kdcdefaults]
                kdc_listen = 127.0.0.1:\(port)
                kdc_tcp_listen = 127.0.0.1:\(port)
            [realms]
                \(name) = {
                    database_name = \(directory.path)/principal
                    key_stash_file = \(directory.path)/stash
                    acl_file = \(directory.path)/acl
                    max_life = 10h
                    supported_enctypes = aes256-cts-hmac-sha1-96:normal
                }
            [logging]
                kdc = STDERR
                admin_server = STDERR
                default = STDERR

            """
        try directory.write(server.utf8, to: "kdc.conf")
    }
}
