//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
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
    /// The certificates that `SSL_CERT_FILE` and `SSL_CERT_DIR` name, read once.
    private static let environmentRoots = certificates(inFiles: file.map { [$0] } ?? [], directories: directories)
    /// The locations of the system's root certificates.
    private static let systemFiles = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
    ]

    /// The system's roots; `SSL_CERT_FILE` replaces these roots, as with OpenSSL and curl, and `SSL_CERT_DIR` adds others.
    private static let system: CertificateStore =
        file == nil
        ? CertificateStore.systemTrustRoots.appending(contentsOf: environmentRoots) : CertificateStore(environmentRoots)

    /// Whether the server's own certificate is configured as trusted: by the session, the app or the environment.
    static func isConfigured(_ leaf: Certificate, for question: TrustQuestion) -> Bool {
        guard let bytes = question.chain.first else { return false }
        if question.extraRoots.contains(bytes) { return true }
        if question.trustsOnlyExtraRoots { return false }
        return question.roots.isEmpty ? environmentRoots.contains(leaf) : question.roots.contains(bytes)
    }

    /// Whether a configured root cannot be parsed.
    ///
    /// The system's roots are not used instead of an unreadable root.
    static func containsUnreadable(_ roots: [Data]) -> Bool {
        roots.contains { (try? Certificate(derEncoded: Array($0))) == nil }
    }

    /// Returns a message if no roots are available for a question that has no roots of its own; otherwise nil.
    ///
    /// The message says where the library searched for roots.
    static func absence(for question: TrustQuestion) -> String? {
        guard question.roots.isEmpty, question.extraRoots.isEmpty, !question.trustsOnlyExtraRoots, environmentRoots.isEmpty else {
            return nil
        }
        if let file { return "there are no root certificates in \(file), which SSL_CERT_FILE names" }
        return systemHasSome ? nil : "there are no root certificates on this machine"
    }

    static let remedy = "install the package ca-certificates, or set SSL_CERT_FILE to a file of root certificates"

    private static let systemHasSome = systemFiles.contains { path in
        FileManager.default.contents(atPath: path)?.firstRange(of: Data("-----BEGIN ".utf8)) != nil
    }

    /// Loads the system's roots in advance, if checks with the given roots will use them.
    package static func prepare(_ roots: [Data]) {
        if roots.isEmpty && file == nil { _ = CertificateStore.systemTrustRoots }
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
    /// root, because an empty list would mean the system's roots.
    package static func roots(file: String?, directories: [String]) -> [Data] {
        let files = file ?? systemFiles.first { FileManager.default.isReadableFile(atPath: $0) }
        let found = certificates(inFiles: files.map { [$0] } ?? [], directories: directories).compactMap { certificate in
            var serializer = DER.Serializer()
            return (try? serializer.serialize(certificate)).map { Data(serializer.serializedBytes) }
        }
        return found.isEmpty ? [Data()] : found
    }

    /// Returns all certificates in the files, and in the files of the directories, without duplicates.
    ///
    /// Content other than certificates is skipped.
    package static func certificates(inFiles files: [String], directories: [String]) -> [Certificate] {
        let listed = directories.flatMap { directory in
            (try? FileManager.default.contentsOfDirectory(atPath: directory))?.sorted().map { "\(directory)/\($0)" } ?? []
        }
        var seen: Set<[UInt8]> = []
        var certificates: [Certificate] = []
        for path in files + listed {
            guard let bytes = try? Data(contentsOf: URL(filePath: path)),
                let documents = try? PEMDocument.parseMultiple(pemString: String(decoding: bytes, as: UTF8.self))
            else { continue }
            for document in documents where seen.insert(document.derBytes).inserted {
                if let certificate = try? Certificate(pemDocument: document) { certificates.append(certificate) }
            }
        }
        return certificates
    }
}
