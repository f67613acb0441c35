// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import LoadingModel
import NIOCore

/// Answers lookups with the addresses that the session's configuration specifies, and passes other lookups to another resolver.
///
/// If the configuration specifies a Unix-domain socket, the socket is the only address of every host. It is reported for IPv4, the
/// family that the race requests last. If the configuration specifies a local address, only addresses of the same family are found,
/// because a socket has one family.
struct DirectedResolver: Resolver {
    private let options: ConnectionOptions
    private let other: any Resolver
    private let localFamily: NIOBSDSocket.ProtocolFamily?

    init(_ options: ConnectionOptions, otherwise other: any Resolver) {
        self.options = options
        self.other = other
        localFamily = options.localAddress.flatMap { try? SocketAddress(ipAddress: $0, port: 0).protocol }
    }

    func lookUp(
        _ host: String, port: Int, family: NIOBSDSocket.ProtocolFamily, on loop: any EventLoop,
        holdChanged: @escaping @Sendable (Bool) -> Void, reply: @escaping @Sendable (Result<[SocketAddress], LoadError>) -> Void
    ) -> @Sendable () -> Void {
        guard let answer = answer(host, port, family) else {
            return other.lookUp(host, port: port, family: family, on: loop, holdChanged: holdChanged, reply: reply)
        }
        // The cancellation takes effect only on the lookup's loop, where dials cancel lookups.
        let isCancelled = NIOLoopBoundBox(false, eventLoop: loop)
        loop.execute { if !isCancelled.value { reply(answer) } }
        return { if loop.inEventLoop { isCancelled.value = true } }
    }

    func forget() { other.forget() }

    func asksNameServers(for host: String, port: Int) -> Bool {
        answer(host, port, localFamily ?? .inet) == nil && other.asksNameServers(for: host, port: port)
    }

    private func answer(
        _ host: String, _ port: Int, _ family: NIOBSDSocket.ProtocolFamily
    ) -> Result<[SocketAddress], LoadError>? {
        if let path = options.unixSocketPath { return family == .inet6 ? .failure(Self.none(host)) : Self.socket(at: path) }
        if let address = options.localAddress, !canReach(host, family) {
            guard localFamily != nil else {
                return .failure(
                    LoadError(
                        .cannotConnectToHost, "connecting from \(address): this machine cannot connect from that address")
                )
            }
            return .failure(Self.none(host, "of the family of \(address), the address to connect from"))
        }
        guard let given = options.configuredAddresses(host: host, port: port) else { return nil }
        var addresses: [SocketAddress] = []
        for text in given {
            guard let address = SystemResolver.address(text, port: port) else {
                return .failure(
                    LoadError(.cannotConnectToHost, "looking up \(host): the configured address '\(text)' is not an IP address"))
            }
            if address.protocol == family { addresses.append(address) }
        }
        return addresses.isEmpty ? .failure(Self.none(host)) : .success(addresses)
    }

    /// Whether a socket with the local address can connect to the host, which has addresses of this family, or is a literal
    /// address.
    private func canReach(_ host: String, _ family: NIOBSDSocket.ProtocolFamily) -> Bool {
        guard AddressLiteral.isAddress(host) else { return family == localFamily }
        return localFamily == (host.utf8.contains(UInt8(ascii: ":")) ? .inet6 : .inet)
    }

    private static func none(_ host: String, _ which: String = "of this family") -> LoadError {
        LoadError(.cannotFindHost, "looking up \(host): it has no address \(which)")
    }

    private static func socket(at path: String) -> Result<[SocketAddress], LoadError> {
        // A NUL would truncate the path.
        guard !path.utf8.contains(0), !path.isEmpty else {
            return .failure(
                LoadError(
                    .cannotConnectToHost, "connecting to a socket at '\(path.prefix { $0 != "\0" })': that is not a valid path"))
        }
        guard let address = try? SocketAddress(unixDomainSocketPath: path) else {
            return .failure(
                LoadError(
                    .cannotConnectToHost, "connecting to a socket at \(path): the path is longer than 107 bytes (the limit)"
                )
            )
        }
        return .success([address])
    }
}
