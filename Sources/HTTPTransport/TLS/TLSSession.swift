//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import LoadingModel
package import NIOCore
import NIOSSL

/// Secures connections as one policy demands; used on any loop.
package final class TLSSession: Sendable {
    /// What both sides agreed on in the handshake.
    package struct Agreement: Sendable, Hashable {
        /// As on the wire (0x0304 is TLS 1.3).
        package var version: UInt16?
        /// The IANA number of the cipher suite.
        package var cipherSuite: UInt16?
        /// The ALPN identifier; nil if the server chose none.
        package var applicationProtocol: String?
    }

    package let policy: TLSPolicy

    package init(policy: TLSPolicy) { self.policy = policy }

    /// Begins to make what a first handshake needs, so that it is there when the TCP connection stands.
    package func prepare() {
        TLSContexts.context(for: policy) { _ in }
        TrustRoots.prepare(policy.trustRoots)
    }

    /// Does the client's handshake; to be called on the channel's loop.
    ///
    /// - Parameters:
    ///   - channel: Connected, but not reading yet (`autoRead` off): the handshake may have to wait for the TLS context, and what
    ///     the server sends in the meantime must not be lost.
    ///   - host: The name or address that the server's certificate must be for.
    ///   - completion: Called on the loop, once, within the event that decided it. After a failure the channel is closed.
    package func secure(
        _ channel: any Channel, host: String, completion: @escaping (Result<Agreement, LoadError>) -> Void
    ) {
        let loop = channel.eventLoop
        let bound = NIOLoopBound((channel: channel, completion: completion), eventLoop: loop)
        TLSContexts.context(for: policy) { [self] result in
            if loop.inEventLoop {
                begin(bound.value.channel, host, result, bound.value.completion)
            } else {
                loop.execute { self.begin(bound.value.channel, host, result, bound.value.completion) }
            }
        }
    }

    private func begin(
        _ channel: any Channel, _ host: String, _ context: Result<NIOSSLContext, LoadError>,
        _ completion: @escaping (Result<Agreement, LoadError>) -> Void
    ) {
        guard case .success(let context) = context else {
            channel.close(promise: nil)
            if case .failure(let error) = context { completion(.failure(error)) }
            return
        }
        let handshake = TLSHandshake(host: host, policy: policy, completion: completion)
        do {
            guard channel.isActive else { throw ChannelError.eof }
            // SNI is for names only (RFC 6066, section 3).
            let name = HostName.isAddress(host) ? nil : host.hasSuffix(".") ? String(host.dropLast()) : host
            let security = try NIOSSLClientHandler(
                context: context,
                serverHostname: name,
                customVerificationCallback: { [loop = channel.eventLoop] chain, promise in
                    handshake.verify(chain, on: loop, verdict: promise)
                }
            )
            handshake.security = security
            // From the tail on, so that everybody is there when the TLS handler says hello.
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(handshake)
            try pipeline.addHandler(security, position: .first)
            try pipeline.addHandler(handshake.hello, position: .first)
            try channel.syncOptions?.setOption(.autoRead, value: true)
        } catch {
            channel.close(promise: nil)
            handshake.fail(error)
        }
    }
}
