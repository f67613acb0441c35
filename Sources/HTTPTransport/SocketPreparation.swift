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
import NIOPosix

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What is said to a socket before it connects: where it is to connect from.
struct SocketPreparation {
    /// Why a socket cannot be used as the session demands.
    struct Refusal: Error {
        let reason: String
    }

    private let interfaceName: String?
    private let localAddress: SocketAddress?

    /// Nil where there is nothing to say.
    init?(_ options: ConnectionOptions?) {
        guard let options, options.unixSocketPath == nil, options.interfaceName != nil || options.localAddress != nil else {
            return nil
        }
        interfaceName = options.interfaceName
        localAddress = options.localAddress.flatMap { try? SocketAddress(ipAddress: $0, port: 0) }
    }

    func bind(_ bootstrap: ClientBootstrap) -> ClientBootstrap {
        guard let localAddress else { return bootstrap }
        // The port is chosen when the other end is known, so that connections to different servers can have the same one.
        let bindAddressNoPort = ChannelOptions.Types.SocketOption(level: .ip, name: .init(rawValue: 24))
        return bootstrap.channelOption(bindAddressNoPort, value: 1).bind(to: localAddress)
    }

    func prepare(_ channel: any Channel) -> EventLoopFuture<Void> {
        guard let interfaceName else { return channel.eventLoop.makeSucceededVoidFuture() }
        guard let name = Self.name(interfaceName), let socket = channel as? any SocketOptionProvider else {
            return channel.eventLoop.makeFailedFuture(Refusal(reason: "the interface '\(interfaceName)' does not exist"))
        }
        return socket.unsafeSetSocketOption(level: .socket, name: .init(rawValue: SO_BINDTODEVICE), value: name)
            .flatMapErrorThrowing { error in
                let reason = PrintableFailure.text(error).map { ": " + $0 } ?? ""
                throw Refusal(reason: "the interface '\(interfaceName)' cannot be used\(reason)")
            }
    }

    /// What went wrong, in terms of what was demanded.
    func explain(_ error: any Error) -> any Error {
        guard let localAddress, (error as? IOError)?.errnoCode == EADDRNOTAVAIL else { return error }
        let reason = "\(localAddress.ipAddress ?? "") is no address that this machine can connect from"
        return Refusal(reason: reason)
    }

    /// As the kernel takes it: 15 bytes and a zero.
    private static func name(_ text: String) -> SIMD16<UInt8>? {
        let bytes = Array(text.utf8)
        guard 1...15 ~= bytes.count, !bytes.contains(0) else { return nil }
        return SIMD16(bytes + Array(repeating: 0, count: 16 - bytes.count))
    }
}
