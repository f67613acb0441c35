// SPDX-License-Identifier: Apache-2.0

import CQUIC
import FoundationEssentials
import HTTPRules
import HTTPWire
import LoadingModel
import LoadingTrust
import NIOCore

/// A handshake with one address, up to the moment in which the server's chain is known.
///
/// Confined to the dialer's loop.
final class QUICAttempt: QUICConnectionOwner {
    let address: SocketAddress
    let interface: String?
    let identity: ClientIdentity?
    let loop: any EventLoop
    private(set) var quic: QUICConnection?
    private(set) var isComplete = false
    /// Whether anything arrived from the address.
    private(set) var hasHeard = false
    /// Called with the end of the handshake or its failure, and with the end of the connection after it.
    private var completion: ((Result<QUICConnection, any Error>) -> Void)?
    private var isCancelled = false
    private let room: ConnectionBudget.Share?

    /// Takes over a reservation of the budget, which the socket's end gives back.
    init(
        to address: SocketAddress, by interface: String?, identity: ClientIdentity? = nil, room: ConnectionBudget.Share?,
        on loop: any EventLoop,
        completion: @escaping (Result<QUICConnection, any Error>) -> Void
    ) {
        self.address = address
        self.interface = interface
        self.identity = identity
        self.room = room
        self.loop = loop
        self.completion = completion
    }

    func start(_ access: QUICAccess, scratch: DatagramScratch, serverName: String?, preparation: SocketPreparation?) {
        let quic = QUICConnection(access.library, scratch: scratch, on: loop)
        quic.owner = self
        self.quic = quic
        let order = QUICSocketOrder(address: address, interface: interface, preparation: preparation, room: room, loop: loop)
        order.open(for: quic) { [self] result in
            do {
                let socket = try result.get()
                if isCancelled { return socket.channel?.close(promise: nil) ?? () }
                try quic.start(QUICSettings(serverName: serverName, identity: identity), on: socket)
            } catch {
                if case .success(let socket) = result { socket.channel?.close(promise: nil) }
                quic.owner = nil
                fail(error)
            }
        }
    }

    private func fail(_ error: any Error) {
        let completion = completion.take()
        quic = nil
        completion?(.failure(error))
    }

    /// Ends the attempt without a report.
    func cancel(alert: UInt8? = nil) {
        completion = nil
        isCancelled = true
        guard let quic = quic.take() else { return }
        if let alert { quic.refuse(alert: alert) } else { quic.close() }
    }

    /// Ends the attempt's part in the connection, which gets another owner.
    func release() { (completion, quic) = (nil, nil) }

    // MARK: QUICConnectionOwner

    func handshakeCompleted() {
        guard let quic, !isComplete else { return }
        isComplete = true
        quic.keepAlive(after: 10_000_000_000)
        // The library is at work: what follows may end the connection.
        quic.executor.callLater { [self] in if self.quic != nil { completion?(.success(quic)) } }
    }

    func ended(_ failure: QUICFailure) { fail(failure) }

    /// No program listens at the port; before the handshake is complete, TCP may as well begin.
    func wasRefused(_ error: any Error) {
        guard !isComplete else { return }
        let quic = quic
        fail(error)
        quic?.close()
    }

    func limitsChanged() {}
    func sectionBegan(_ stream: Int64, isTrailers: Bool) {}
    func field(_ stream: Int64, _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {}
    func sectionEnded(_ stream: Int64, endsStream: Bool) {}
    func content(_ stream: Int64, _ bytes: UnsafeRawBufferPointer) {}
    func responseEnded(_ stream: Int64) {}
    func bodySent(_ stream: Int64) {}
    func stopped(_ stream: Int64, _ code: HTTP3ErrorCode) {}
    func reset(_ stream: Int64, _ code: HTTP3ErrorCode) {}
    func closed(_ stream: Int64, _ code: HTTP3ErrorCode) {}
    func goingAway(firstUnprocessed: Int64) {}
    func willReceive(now: NIODeadline) { hasHeard = true }
    func received() {}
    func isUnanswered() {}
}
