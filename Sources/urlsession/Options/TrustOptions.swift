// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// The options for trusting servers, for TLS versions, and for a client certificate.
struct TrustOptions: ParsableArguments {
    /// A TLS version in curl's notation.
    enum Version: String, ExpressibleByArgument, CaseIterable, Comparable {
        case v1_0 = "1.0"
        case v1_1 = "1.1"
        case v1_2 = "1.2"
        case v1_3 = "1.3"

        static func < (one: Version, other: Version) -> Bool { one.rawValue < other.rawValue }

        var tls: tls_protocol_version_t {
            switch self {
            case .v1_0: .TLSv10
            case .v1_1: .TLSv11
            case .v1_2: .TLSv12
            case .v1_3: .TLSv13
            }
        }
    }

    /// Curl's names of file types.
    enum CertificateType: String, ExpressibleByArgument {
        case pem, p12

        init?(argument: String) { self.init(rawValue: argument.lowercased()) }
    }

    enum KeyType: String, ExpressibleByArgument {
        case pem, der

        init?(argument: String) { self.init(rawValue: argument.lowercased()) }
    }

    /// Curl's flags that correspond to `--tls-min`.
    enum LeastVersion: String, EnumerableFlag {
        case any, v1_0, v1_1, v1_2, v1_3

        var version: Version { Version(rawValue: String(rawValue.dropFirst().replacing("_", with: "."))) ?? .v1_0 }

        static func name(for value: LeastVersion) -> NameSpecification {
            .customLong(value == .any ? "tlsv1" : "tls" + value.rawValue.replacing("_", with: "."))
        }

        static func help(for value: LeastVersion) -> ArgumentHelp? {
            ArgumentHelp(
                "The same as --tls-min \(value.version.rawValue).", visibility: value.version >= .v1_2 ? .default : .hidden)
        }
    }

    @Option("--cacert <file>", "Trust only the certificates in this PEM file.")
    var trustRoots: String?

    @Option("-E --cert <file[:password]>", "Send this certificate if the server requests one: PEM.")
    var cert: String?

    @Option("--key <file>", "The private key of --cert, if it is in a separate file: PEM or DER.")
    var key: String?

    @Option("--pass <password>", "The password of the key, if it does not follow the file's name.")
    var pass: String?

    @Option("--cert-type <type>", "The format of --cert: PEM, or P12, which is the same as --p12.")
    var certificateType: CertificateType?

    @Option("--key-type <key-type>", "PEM or DER: --key reads both.", visibility: .hidden)
    var keyType: KeyType?

    @Option("--p12 <file[:password]>", "The same as --cert with its key: PKCS #12.")
    var p12: String?

    @Option(
        "--pin --pinnedpubkey <sha256//hash[;sha256//hash]>",
        "Accept only server certificates whose public key has one of these hashes.")
    var pin: String?

    @Option("--tls-min <version>", "The lowest TLS version to accept; 1.2 by default.")
    var lowestVersion: Version?

    @Option("--tls-max <version>", "The highest TLS version to offer; 1.3 by default.")
    var highestVersion: Version?

    @Flag(exclusivity: .chooseLast)
    var leastVersion: LeastVersion?

    @Flag("-k --insecure", "Trust any certificate of the server.")
    var insecure = false

    @Flag("--ssl-reqd", "For ftp: start TLS before the login, and protect the data connections, or fail.")
    var sslReqd = false

    @Flag("--ats", "Apply the defaults of App Transport Security: only https, with TLS 1.2 and forward secrecy.")
    var ats = false

    func validate() throws {
        try refuse(
            if: (pass != nil || certificateType != nil) && cert == nil && p12 == nil,
            "--pass and --cert-type require --cert.")
        try refuse(if: key != nil && cert == nil, "--key requires --cert.")
        try refuse(if: cert != nil && p12 != nil, "--cert and --p12 are mutually exclusive.")
        try refuse(if: insecure && ats, "--insecure and --ats are mutually exclusive.")
        try refuse(if: lowestVersion != nil && leastVersion != nil, "--tls-min and --tlsv1.2 or similar are mutually exclusive.")
        let (lowest, highest) = (lowestVersion ?? leastVersion?.version ?? .v1_2, highestVersion ?? .v1_3)
        try refuse(if: lowest > highest, "There is no TLS version from \(lowest.rawValue) to \(highest.rawValue).")
        if let pin { _ = try KeyPins(pin) }
    }

    func apply(to configuration: URLSessionConfiguration) throws {
        if let trustRoots {
            configuration.tlsTrustRoots = try PEMFile.certificates(of: trustRoots)
        }
        if let lowest = lowestVersion ?? leastVersion?.version {
            configuration.tlsMinimumSupportedProtocolVersion = lowest.tls
        }
        if let highestVersion {
            configuration.tlsMaximumSupportedProtocolVersion = highestVersion.tls
        }
        configuration.requiresSecureFTP = sslReqd
        configuration.appTransportSecurity = ats ? [:] : ["NSAllowsArbitraryLoads": true]
    }

    /// Returns the client certificate with its key; nil if no certificate is specified.
    func identity() throws -> SecIdentity? {
        if let p12 { return try IdentityFile(p12, password: pass).pkcs12() }
        guard let cert else { return nil }
        let file = IdentityFile(cert, password: pass)
        return certificateType == .p12 ? try file.pkcs12() : try file.pem(key: key)
    }

    func pins() throws -> KeyPins? { try pin.map { try KeyPins($0) } }
}
