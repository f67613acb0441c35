//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import LoadingModel
import NIOCore
import NIOSSL
import NIOTLS

/// Waits in a pipeline, behind the TLS handler, for the handshake's end; says what was agreed on or why it failed, and leaves.
///
/// It keeps the verdict on the server's certificate: the TLS handler's own error only says that the handshake failed.
final class TLSHandshake: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    /// Sits before the TLS handler.
    let hello = ServerHelloReader()
    var security: NIOSSLClientHandler?

    private let host: String
    private let policy: TLSPolicy
    private var completion: ((Result<TLSSession.Agreement, LoadError>) -> Void)?
    private var distrust: TrustFailure?

    init(host: String, policy: TLSPolicy, completion: @escaping (Result<TLSSession.Agreement, LoadError>) -> Void) {
        self.host = host
        self.policy = policy
        self.completion = completion
    }

    /// Has the server's chain checked, off the loop unless the verdict is known.
    func verify(_ chain: [NIOSSLCertificate], on loop: any EventLoop, verdict: EventLoopPromise<NIOSSLVerificationResult>) {
        let bound = NIOLoopBound(self, eventLoop: loop)
        let certificates: [[UInt8]]
        do {
            certificates = try chain.map { try $0.toDERBytes() }
        } catch {
            return verdict.fail(error)
        }
        TrustVerdicts.verdict(on: certificates, host: host, roots: policy.trustRoots, now: .now()) { failure in
            loop.execute {
                bound.value.distrust = failure
                verdict.succeed(failure == nil ? .certificateVerified : .failed)
            }
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .handshakeCompleted(let applicationProtocol) = event as? TLSUserEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        let agreement = TLSSession.Agreement(
            version: security?.tlsVersion.map(Self.number),
            cipherSuite: hello.cipherSuite,
            applicationProtocol: applicationProtocol
        )
        let completion = completion
        self.completion = nil
        security = nil
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        completion?(.success(agreement))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(ChannelError.eof)
        context.fireChannelInactive()
    }

    /// The pipeline is torn down: the channel was closed before it came to anything.
    func handlerRemoved(context: ChannelHandlerContext) {
        fail(ChannelError.eof)
    }

    /// Says that the handshake came to nothing, unless its outcome was told already.
    func fail(_ error: any Error) {
        guard let completion else { return }
        self.completion = nil
        security = nil
        if let distrust {
            completion(.failure(LoadError(distrust.kind, distrust.message, cause: error)))
        } else {
            completion(.failure(TLSFailure.error(error, host: host, hello: hello, policy: policy)))
        }
    }

    private static func number(_ version: TLSVersion) -> UInt16 {
        switch version {
        case .tlsv1: 0x0301
        case .tlsv11: 0x0302
        case .tlsv12: 0x0303
        case .tlsv13: 0x0304
        }
    }
}
