// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOPosix
import NIOSSL

/// Determines which handshake a server's request for a client certificate belongs to.
///
/// NIOSSL reports the request through a callback of the TLS context, and passes only the server's name. Many handshakes share a
/// context. NIOSSL makes the call while the TLS handler processes the event that carried the request. The handshake is therefore
/// recorded here before each event is passed to the TLS handler.
enum ClientCertificateRequests {
    final class Current: Sendable {
        let handshake: NIOLoopBound<TLSHandshake>
        init(_ handshake: TLSHandshake, on loop: any EventLoop) { self.handshake = NIOLoopBound(handshake, eventLoop: loop) }
    }

    private static let current = ThreadSpecificVariable<Current>()

    /// Attributes the TLS handler's next work on the loop to this handshake.
    static func enter(_ handshake: TLSHandshake, on loop: any EventLoop) -> Current {
        let mine = Current(handshake, on: loop)
        // This task runs after those that are already queued, and before those that NIOSSL enqueues next.
        loop.execute { current.currentValue = mine }
        return mine
    }

    static func leave(_ mine: Current) {
        if current.currentValue === mine { current.currentValue = nil }
    }

    static func during<Result>(_ handshake: TLSHandshake, on loop: any EventLoop, _ work: () -> Result) -> Result {
        let outer = current.currentValue
        current.currentValue = Current(handshake, on: loop)
        defer { current.currentValue = outer }
        return work()
    }

    static func answer(_ promise: EventLoopPromise<NIOSSLContextConfigurationOverride>) {
        guard let handshake = current.currentValue else { return promise.succeed(.noChanges) }
        handshake.handshake.value.certificateRequested(promise)
    }
}
