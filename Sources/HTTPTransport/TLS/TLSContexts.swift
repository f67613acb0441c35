// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import LoadingModel
import NIOCore
import NIOSSL
import Synchronization

/// The TLS contexts of the process, one per policy: creating a context takes milliseconds, and contexts hold no state of a
/// connection.
enum TLSContexts {
    private enum Entry {
        case pending([@Sendable (Result<NIOSSLContext, LoadError>) -> Void])
        case made(Result<NIOSSLContext, LoadError>)
    }

    private static let maximumCount = 64
    private static let entries = Mutex<[TLSPolicy: Entry]>([:])

    /// Replies at once if the context already exists, and otherwise from the thread that creates it.
    static func context(for policy: TLSPolicy, reply: @escaping @Sendable (Result<NIOSSLContext, LoadError>) -> Void) {
        let (known, mustCreate) = entries.withLock { entries -> (Result<NIOSSLContext, LoadError>?, Bool) in
            switch entries[policy] {
            case .made(let result): return (result, false)
            case .pending(let replies):
                entries[policy] = .pending(replies + [reply])
                return (nil, false)
            case nil:
                entries[policy] = .pending([reply])
                return (nil, true)
            }
        }
        if let known { return reply(known) }
        guard mustCreate else { return }
        let work: WorkerThreads.Work = {
            let result = make(policy)
            for reply in store(result, for: policy) { reply(result) }
        }
        // If no thread is available, the work runs here: slow is better than never.
        if !WorkerThreads.computing.run(work) { work() }
    }

    /// Makes a context for a single connection, on which TLS 1.2 may be negotiated again, once, to present an identity; replies from
    /// another thread.
    ///
    /// NIOSSL cannot wait for an identity when the server asks for it in a second handshake, so the context already has it.
    static func context(
        for policy: TLSPolicy, presenting identity: ClientIdentity,
        reply: @escaping @Sendable (Result<NIOSSLContext, LoadError>) -> Void
    ) {
        let work: WorkerThreads.Work = { reply(make(policy, presenting: identity)) }
        if !WorkerThreads.computing.run(work) { work() }
    }

    private static func store(
        _ result: Result<NIOSSLContext, LoadError>, for policy: TLSPolicy
    ) -> [@Sendable (Result<NIOSSLContext, LoadError>) -> Void] {
        entries.withLock { entries in
            var waiting: [@Sendable (Result<NIOSSLContext, LoadError>) -> Void] = []
            if case .pending(let replies) = entries[policy] { waiting = replies }
            if entries.count > maximumCount {
                entries = entries.filter { if case .pending = $0.value { true } else { false } }
            }
            entries[policy] = .made(result)
            return waiting
        }
    }

    private static func make(
        _ policy: TLSPolicy, presenting identity: ClientIdentity? = nil
    ) -> Result<NIOSSLContext, LoadError> {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = TLSVersion(number: policy.minimumVersion) ?? .tlsv12
        configuration.maximumTLSVersion = policy.maximumVersion.flatMap(TLSVersion.init(number:))
        configuration.applicationProtocols = policy.versions.names
        // `TrustCheck` evaluates chains, so BoringSSL needs no roots. Parsing the system's roots would make a context expensive.
        configuration.trustRoots = .certificates([])
        configuration.certificateVerification = .noHostnameVerification
        if policy.requiresForwardSecrecy {
            configuration.cipherSuites = "ECDH+AESGCM:ECDH+CHACHA20:ECDH+AES256:ECDH+AES128:!aNULL:!eNULL:!MD5"
        }
        if identity == nil {
            configuration.sslContextCallback = { _, promise in ClientCertificateRequests.answer(promise) }
        } else {
            configuration.maximumTLSVersion = .tlsv12
            configuration.renegotiationSupport = .once
        }
        // A closing connection sends close_notify, but waits only briefly for the peer's close_notify.
        configuration.shutdownTimeout = .seconds(1)
        do {
            if let identity {
                configuration.certificateChain = try identity.chain
                configuration.privateKey = try identity.key
            }
            return .success(try NIOSSLContext(configuration: configuration))
        } catch {
            return .failure(
                LoadError(
                    .secureConnectionFailed, "TLS could not be set up" + (PrintableFailure.text(error).map { ": " + $0 } ?? ""),
                    cause: error))
        }
    }
}

extension TLSVersion {
    private static let all: [(number: UInt16, version: TLSVersion)] = [
        (0x0301, .tlsv1), (0x0302, .tlsv11), (0x0303, .tlsv12), (0x0304, .tlsv13),
    ]

    /// Creates a version from its number on the wire.
    init?(number: UInt16) {
        guard let known = Self.all.first(where: { $0.number == number }) else { return nil }
        self = known.version
    }

    var number: UInt16? { Self.all.first { $0.version == self }?.number }
}

extension ClientIdentity {
    /// The certificates and the key in NIOSSL's form.
    var chain: [NIOSSLCertificateSource] {
        get throws { try certificates.map { .certificate(try NIOSSLCertificate(bytes: Array($0), format: .der)) } }
    }

    var key: NIOSSLPrivateKeySource {
        get throws { .privateKey(try NIOSSLPrivateKey(bytes: Array(privateKey), format: .der)) }
    }
}
