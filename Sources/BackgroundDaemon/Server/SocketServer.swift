// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import CLoadingSystem
import FoundationEssentials
import LibC
import NIOCore
import NIOPosix
import SystemThreads

/// Listens for connections, and accepts only those of this user's programs.
struct SocketServer: Sendable {
    /// The engine leaves a quarter of the descriptors: half of this quarter is for connections, the other half for the database and
    /// short-lived descriptors.
    private static let connectionLimit = min(1024, max(16, DescriptorLimit.divisible() / 8))
    /// The limit per program.
    private static let programLimit = min(256, max(8, connectionLimit / 2))

    let desk: TransferDesk
    let group: MultiThreadedEventLoopGroup

    /// Listens on a socket that systemd created.
    func listen(on descriptor: CInt) throws -> any Channel {
        try bootstrap.withBoundSocket(descriptor).wait()
    }

    /// Listens at the daemon's path; the socket appears there only when it already accepts connections.
    func listen(at place: DaemonPlace) throws -> any Channel {
        let temporary = "\(place.socket).\(getpid())"
        unlink(temporary)
        let channel = try bootstrap.bind(unixDomainSocketPath: temporary).wait()
        // Not by a umask, which would also apply to the files and folders of other threads.
        guard chmod(temporary, 0o600) == 0, rename(temporary, place.socket) == 0 else {
            let error = errno
            try? channel.close().wait()
            unlink(temporary)
            throw StorageFailure(error, "The socket \(place.socket) cannot be created")
        }
        return channel
    }

    private var bootstrap: ServerBootstrap {
        ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 128)
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 64 << 10))
            .childChannelInitializer { [desk] channel in Self.accept(channel, desk) }
    }

    /// Identifies the peer before reading anything from it.
    private static func accept(_ channel: any Channel, _ desk: TransferDesk) -> EventLoopFuture<Void> {
        guard let provider = channel as? any SocketOptionProvider else { return channel.close() }
        return provider.unsafeGetSocketOption(level: .socket, name: .init(rawValue: SO_PEERCRED)).flatMap {
            (peer: PeerCredentials) in
            guard peer.user == geteuid() else {
                desk.journal.log(.warning, "user \(peer.user) was refused")
                return channel.close()
            }
            guard let program = ProgramFile.of(peer.process) else { return channel.close() }
            let (isFull, isClosing) = desk.assumeIsolated { desk in
                let count = desk.clients.connections.values.reduce(0) { $0 + ($1.program == program ? 1 : 0) }
                return (desk.clients.connections.count >= connectionLimit || count >= programLimit, desk.isClosing)
            }
            // While the daemon is closing, programs should connect to the next daemon.
            if isClosing { return channel.close() }
            guard !isFull else {
                desk.journal.log(.warning, "there are too many connections of \(program)")
                return channel.close()
            }
            return channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(
                    ClientConnection(
                        channel, peer: cls_peer(process: peer.process, user: peer.user), program: program, owner: desk))
            }
        }
    }
}

/// `struct ucred`.
private struct PeerCredentials: Sendable {
    var process: Int32 = 0
    var user: UInt32 = 0
    var group: UInt32 = 0
}
