// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import SwiftASN1
import Synchronization
package import X509

/// The trust roots.
package enum TrustRoots {
    private static let maximumCount = 64
    private static let stores = Mutex<[[Data]: CertificateStore]>([:])

    private static let environment = ProcessInfo.processInfo.environment
    /// The values of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    package static let file = environment["SSL_CERT_FILE"].flatMap { $0.isEmpty ? nil : $0 }
    package static let directories = environment["SSL_CERT_DIR"]?.split(separator: ":").map(String.init) ?? []
    /// The certificates that `SSL_CERT_FILE` and `SSL_CERT_DIR` name, read once, and whether no other process can read the file.
    private static let environmentContent = (
        isOfThisProcess: file.map { $0.hasPrefix("/dev/") || $0.hasPrefix("/proc/") || RootFile.isPipe($0) } ?? false,
        bytes: contents(ofFiles: file.map { [$0] } ?? [], directories: directories, readsPipes: true)
    )
    private static var environmentBytes: [[UInt8]] { environmentContent.bytes }
    private static let environmentRoots = certificates(environmentBytes)
    /// The locations of the system's root certificates.
    private static let systemFiles = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
    ]

    /// The system's roots, unless `SSL_CERT_FILE` replaces them, as with OpenSSL and curl.
    ///
    /// X509's `systemTrustRoots` are not used, because one root of a kind that X509 does not support leaves none of them.
    private static let systemBytes = file == nil ? contents(ofFiles: systemFile.map { [$0] } ?? [], directories: []) : []
    private static let systemRoots = certificates(systemBytes)
    private static var systemFile: String? { systemFiles.first { FileManager.default.isReadableFile(atPath: $0) } }
    /// The roots of a session that has none of its own; `SSL_CERT_DIR` adds some to the system's.
    private static let system = CertificateStore(systemRoots + environmentRoots)
    /// Starts loading these roots, once.
    private static let loading: Void = { Task.detached { _ = system } }()

    /// Whether the server's own certificate is configured as trusted: by the session, the app or the environment.
    static func isConfigured(_ leaf: Certificate, for question: TrustQuestion) -> Bool {
        guard let bytes = question.chain.first else { return false }
        if question.extraRoots.contains(bytes) { return true }
        if question.trustsOnlyExtraRoots { return false }
        return question.roots.isEmpty ? environmentRoots.contains(leaf) : question.roots.contains(bytes)
    }

    /// Whether a configured root is not a certificate.
    ///
    /// The system's roots are not used instead of an unreadable root.
    static func containsUnreadable(_ roots: [Data]) -> Bool { roots.contains { CertificateFields(Array($0)) == nil } }

    /// Returns why a trusted root with this name cannot be used; nil if there is no such root.
    static func obstacle(inRootNamed name: DistinguishedName, for question: TrustQuestion) -> ServerCertificatePolicy.Fault? {
        var roots = question.extraRoots.map { Array($0) }
        if !question.trustsOnlyExtraRoots {
            roots += question.roots.isEmpty ? systemBytes + environmentBytes : question.roots.map { Array($0) }
        }
        let named = roots.lazy.compactMap(CertificateFields.init).filter { $0.subjectName == name }
        return named.compactMap(\.obstacle).first
    }

    /// Returns a message if no roots are available for a question that has no roots of its own; otherwise nil.
    ///
    /// The message says where the library searched for roots.
    static func absence(for question: TrustQuestion) -> String? {
        guard question.roots.isEmpty, question.extraRoots.isEmpty, !question.trustsOnlyExtraRoots, environmentRoots.isEmpty else {
            return nil
        }
        if let file { return "there are no root certificates in \(file), which SSL_CERT_FILE names" }
        return systemRoots.isEmpty ? "there are no root certificates on this machine" : nil
    }

    static let remedy = "install the package ca-certificates, or set SSL_CERT_FILE to a file of root certificates"

    /// Loads the system's roots in advance, if checks with the given roots will use them.
    package static func prepare(_ roots: [Data]) {
        if roots.isEmpty && file == nil { _ = loading }
    }

    static func store(for question: TrustQuestion) -> CertificateStore {
        if question.trustsOnlyExtraRoots {
            return question.extraRoots.isEmpty ? CertificateStore() : store(of: question.extraRoots)
        }
        if question.extraRoots.isEmpty { return store(of: question.roots) }
        return store(of: question.roots)
            .appending(contentsOf: question.extraRoots.compactMap { try? Certificate(derEncoded: Array($0)) })
    }

    private static func store(of roots: [Data]) -> CertificateStore {
        if roots.isEmpty { return system }
        if let store = stores.withLock({ $0[roots] }) { return store }
        let store = CertificateStore(roots.compactMap { try? Certificate(derEncoded: Array($0)) })
        stores.withLock { stores in
            if stores.count >= maximumCount { stores = [:] }
            stores[roots] = store
        }
        return store
    }

    /// Returns the roots that the `SSL_CERT_FILE` and `SSL_CERT_DIR` of another process name, in DER.
    ///
    /// The result includes the system's roots, unless a file replaces them. If nothing can be read, the result is one unusable
    /// root, because an empty list would mean the system's roots. Only regular files are read.
    package static func roots(file: String?, directories: [String]) -> [Data] {
        let found = contents(ofFiles: (file ?? systemFile).map { [$0] } ?? [], directories: directories)
        return found.isEmpty ? [Data()] : found.map { Data($0) }
    }

    /// The certificates that `SSL_CERT_FILE` and `SSL_CERT_DIR` name, in DER, if no other process can read the file, because it is a
    /// pipe or a descriptor of this process; otherwise nil.
    ///
    /// If nothing can be read, the result is one unusable root. The first call waits for the writers of a pipe.
    package static var rootsOfThisProcess: [Data]? {
        guard file != nil, environmentContent.isOfThisProcess else { return nil }
        return environmentBytes.isEmpty ? [Data()] : environmentBytes.map { Data($0) }
    }

    /// Returns all certificates in the files, and in the files of the directories, without duplicates.
    ///
    /// Content other than certificates is skipped, and so are certificates of a kind that is not supported.
    package static func certificates(inFiles files: [String], directories: [String]) -> [Certificate] {
        certificates(contents(ofFiles: files, directories: directories))
    }

    private static func certificates(_ contents: [[UInt8]]) -> [Certificate] {
        contents.compactMap { try? Certificate(derEncoded: $0) }
    }

    /// Returns the certificates in DER, including those of a kind that is not supported.
    ///
    /// `readsPipes` allows the files to be pipes. In the directories, only regular files are read.
    private static func contents(ofFiles files: [String], directories: [String], readsPipes: Bool = false) -> [[UInt8]] {
        let listed = directories.flatMap { directory in
            (try? FileManager.default.contentsOfDirectory(atPath: directory))?.sorted().map { "\(directory)/\($0)" } ?? []
        }
        let paths = files.map { ($0, readsPipes) } + listed.map { ($0, false) }
        var seen: Set<[UInt8]> = []
        return paths.flatMap { path, mayBePipe in
            let blocks = RootFile.content(of: path, mayBePipe: mayBePipe).flatMap(PEMBlock.blocks) ?? []
            return blocks.filter(\.isCertificate).map(\.bytes).filter { CertificateFields($0) != nil && seen.insert($0).inserted }
        }
    }
}
