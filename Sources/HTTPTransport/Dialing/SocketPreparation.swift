// SPDX-License-Identifier: Apache-2.0

import LibC
import LoadingModel
import NIOCore
import NIOPosix

/// The options to set on a socket before it connects: its source, and how its packets are marked.
struct SocketPreparation {
    /// The reason why a socket cannot be used as the session demands.
    struct Refusal: Error {
        let reason: String
    }

    private let interfaceName: String?
    private let localAddress: SocketAddress?
    private let service: ConnectionNeeds.Service

    /// Nil if there is nothing to set.
    init?(_ options: ConnectionOptions?, _ needs: ConnectionNeeds) {
        interfaceName = options?.interfaceName
        localAddress = options?.localAddress.flatMap { try? SocketAddress(ipAddress: $0, port: 0) }
        service = needs.service
        guard options?.unixSocketPath == nil, interfaceName != nil || localAddress != nil || service != .ordinary else {
            return nil
        }
    }

    func bind(_ bootstrap: ClientBootstrap) -> ClientBootstrap {
        guard let localAddress else { return bootstrap }
        // The kernel chooses the port at connect time, so that connections to different servers can share a port.
        let bindAddressNoPort = ChannelOptions.Types.SocketOption(level: .ip, name: .init(rawValue: 24))
        return bootstrap.channelOption(bindAddressNoPort, value: 1).bind(to: localAddress)
    }

    /// The differentiated services code point of the session's service.
    var codePoint: CInt? { TrafficMarks(service)?.codePoint }

    /// The local address that the session demands, with a port that the kernel chooses.
    var localSource: SocketAddress? { localAddress }

    /// Prepares a socket: applies `preparation`, and binds the socket to the interface that it names, or else to the interface
    /// `detour`.
    static func prepare(
        _ preparation: SocketPreparation?, _ channel: any Channel, for address: SocketAddress, by detour: String?
    ) -> EventLoopFuture<Void> {
        closeOnExec(channel)
        if let preparation, let socket = channel as? any SocketOptionProvider {
            preparation.mark(socket, isV6: address.protocol == .inet6)
        }
        guard let name = preparation?.interfaceName ?? detour else { return channel.eventLoop.makeSucceededVoidFuture() }
        return bind(channel, to: name)
    }

    /// Keeps a socket out of the programs that the app starts, where a copy would keep the connection open after it was closed here.
    ///
    /// NIO creates sockets without this flag, so a program that is started between the two calls still gets a copy.
    private static func closeOnExec(_ channel: any Channel) {
        _ = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            fcntl($0, F_SETFD, FD_CLOEXEC)
        }
    }

    private static func bind(_ channel: any Channel, to interfaceName: String) -> EventLoopFuture<Void> {
        guard let name = name(interfaceName), let socket = channel as? any SocketOptionProvider else {
            return channel.eventLoop.makeFailedFuture(Refusal(reason: "the interface '\(interfaceName)' does not exist"))
        }
        return socket.unsafeSetSocketOption(level: .socket, name: .init(rawValue: SO_BINDTODEVICE), value: name)
            .flatMapErrorThrowing { error in
                let reason = PrintableFailure.text(error).map { ": " + $0 } ?? ""
                throw Refusal(reason: "the interface '\(interfaceName)' cannot be used\(reason)")
            }
    }

    /// Marks are best effort: if the kernel refuses a mark, the socket still connects.
    private func mark(_ socket: any SocketOptionProvider, isV6: Bool) {
        guard let marks = TrafficMarks(service) else { return }
        let (level, name): (NIOBSDSocket.OptionLevel, CInt) = isV6 ? (.ipv6, IPV6_TCLASS) : (.ip, IP_TOS)
        _ = socket.unsafeSetSocketOption(level: level, name: .init(rawValue: name), value: marks.codePoint << 2)
        // The priority is set last, because the traffic class option also changes it.
        _ = socket.unsafeSetSocketOption(level: .socket, name: .init(rawValue: SO_PRIORITY), value: marks.priority)
        if service == .background, TrafficMarks.hasLowPriority {
            _ = socket.unsafeSetSocketOption(
                level: .tcp, name: .init(rawValue: TCP_CONGESTION), value: UInt16(littleEndian: 0x706C)  // "lp"
            )
        }
    }

    /// Whether a connection uses multipath TCP at both ends: the kernel has no MPTCP information about connections that fell back
    /// to TCP.
    static func isMultipath(_ channel: any Channel) -> Bool {
        guard let socket = channel as? any SocketOptionProvider else { return false }
        var answer = false
        // The numbers are those of MPTCP_INFO and SOL_MPTCP. On the socket's loop the result is available at once.
        let info: EventLoopFuture<UInt64> = socket.unsafeGetSocketOption(level: .init(rawValue: 284), name: .init(rawValue: 1))
        info.assumeIsolated().whenSuccess { _ in answer = true }
        return answer
    }

    /// Describes the error in terms of the session's configuration.
    func explain(_ error: any Error) -> any Error {
        guard let localAddress, (error as? IOError)?.errnoCode == EADDRNOTAVAIL else { return error }
        return Refusal(reason: "this machine cannot connect from the address \(localAddress.ipAddress ?? "")")
    }

    /// Returns the name padded with zeros to the kernel's 16 bytes; nil if it is empty, is longer than 15 bytes, or contains a
    /// zero.
    private static func name(_ text: String) -> SIMD16<UInt8>? {
        let bytes = Array(text.utf8)
        guard 1...15 ~= bytes.count, !bytes.contains(0) else { return nil }
        return SIMD16(bytes + Array(repeating: 0, count: 16 - bytes.count))
    }
}
