// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import LibC
package import LoadingModel
package import NIOCore
import TransportMachines

/// Looks up the addresses of a host, one family at a time, so that a race can start with the family whose addresses arrive first.
package protocol Resolver: Sendable {
    /// Looks up one family; never blocks, and never replies before it returns.
    ///
    /// - Parameters:
    ///   - host: A name, or a literal address; IPv6 with or without brackets.
    ///   - port: The port of the addresses.
    ///   - family: IPv4 (`.inet`) or IPv6 (`.inet6`).
    ///   - loop: The loop on which `reply` is called: once, or never if the lookup is cancelled in time.
    ///   - holdChanged: Called on the loop with true when the lookup starts waiting for other lookups, and with false when that
    ///     wait ends, at the latest with the reply.
    ///   - reply: Receives at least one address, or the failure: `.cannotFindHost` if the name has no address of this family,
    ///     `.dnsLookupFailed` if no answer arrived.
    /// - Returns: A function that cancels the lookup; the caller may call it at any time, on any thread.
    func lookUp(
        _ host: String, port: Int, family: NIOBSDSocket.ProtocolFamily, on loop: any EventLoop,
        holdChanged: @escaping @Sendable (Bool) -> Void, reply: @escaping @Sendable (Result<[SocketAddress], LoadError>) -> Void
    ) -> @Sendable () -> Void

    /// Discards cached answers.
    func forget()

    /// Whether name servers are asked for the addresses of a host, instead of the system.
    func asksNameServers(for host: String, port: Int) -> Bool
}

extension Resolver {
    /// Looks up one family for a caller that does not need to know whether the lookup waits for others.
    package func lookUp(
        _ host: String, port: Int, family: NIOBSDSocket.ProtocolFamily, on loop: any EventLoop,
        reply: @escaping @Sendable (Result<[SocketAddress], LoadError>) -> Void
    ) -> @Sendable () -> Void {
        lookUp(host, port: port, family: family, on: loop, holdChanged: { _ in }, reply: reply)
    }

    package func asksNameServers(for host: String, port: Int) -> Bool { false }
}

/// Asks the system (`getaddrinfo`) through the process's ``NameLookups``, or another instance.
///
/// Sessions share the results, and no session waits for the slow lookups of another session. Literal addresses, `localhost`
/// (loopback in both families) and `invalid` (no addresses) need no thread and no network (RFC 6761, sections 6.3 and 6.4).
package struct SystemResolver: Resolver {
    private let owner = NameLookups.newOwner()
    private let lookups: NameLookups

    package init() { lookups = .shared }

    /// Uses lookups other than the system's.
    package init(_ lookups: NameLookups) { self.lookups = lookups }

    package func asksNameServers(for host: String, port: Int) -> Bool {
        lookups.asksNameServers && Self.known(host, port: port, family: .inet) == nil
    }

    package func lookUp(
        _ host: String, port: Int, family: NIOBSDSocket.ProtocolFamily, on loop: any EventLoop,
        holdChanged: @escaping @Sendable (Bool) -> Void, reply: @escaping @Sendable (Result<[SocketAddress], LoadError>) -> Void
    ) -> @Sendable () -> Void {
        let call = NameLookups.Call(on: loop, holdChanged: holdChanged) { answer in
            reply(answer.flatMap { Self.chosen($0, of: host, port: port, family: family) })
        }
        if let known = Self.known(host, port: port, family: family) {
            call.answer(known)
            return { call.cancel() }
        }
        let subject: LookupMachine<NameLookups.Answer>.Subject =
            !lookups.asksNameServers ? .both : family == .inet6 ? .v6 : .v4
        let caller = lookups.want(.init(host.lowercased(), subject), call, owner)
        return {
            call.cancel()
            lookups.leave(caller)
        }
    }

    package func forget() { lookups.forget() }

    /// Returns the addresses of the requested family, with the port.
    private static func chosen(
        _ addresses: [SocketAddress], of host: String, port: Int, family: NIOBSDSocket.ProtocolFamily
    ) -> Result<[SocketAddress], LoadError> {
        var chosen = addresses.filter { $0.protocol == family }
        for index in chosen.indices { chosen[index].port = port }
        return chosen.isEmpty ? .failure(LoadError(.cannotFindHost, "looking up \(host): it has no address")) : .success(chosen)
    }

    /// Created only once, because every connection to a literal address needs this error.
    private static let otherFamily = LoadError(.cannotFindHost, "looking up an address: it belongs to the other family")

    /// Returns the result for a host that needs no lookup, and nil for any other host.
    private static func known(
        _ host: String, port: Int, family: NIOBSDSocket.ProtocolFamily
    ) -> Result<[SocketAddress], LoadError>? {
        let literal = HostName.unbracketed(host)
        if AddressLiteral.isAddress(host) {
            guard literal.utf8.contains(UInt8(ascii: ":")) == (family == .inet6) else { return .failure(otherFamily) }
            return ask(literal, port: port, family: family, flags: AI_NUMERICHOST)
        }
        let name = (literal.hasSuffix(".") ? String(literal.dropLast()) : literal).lowercased()
        if name == "localhost" || name.hasSuffix(".localhost") {
            return ask(family == .inet6 ? "::1" : "127.0.0.1", port: port, family: family, flags: AI_NUMERICHOST)
        }
        if name.isEmpty || name.utf8.contains(0) || name == "invalid" || name.hasSuffix(".invalid") {
            return .failure(LoadError(.cannotFindHost, "looking up \(host): there is no such host"))
        }
        return nil
    }

    /// Parses a literal address, which may have a zone; nil if the text is not an address.
    static func address(_ text: String, port: Int) -> SocketAddress? {
        let literal = HostName.unbracketed(text)
        guard literal.utf8.contains(UInt8(ascii: "%")) else { return try? SocketAddress(ipAddress: literal, port: port) }
        return try? ask(literal, port: port, family: .inet6, flags: AI_NUMERICHOST).get().first
    }

    /// Calls `getaddrinfo`, which may block on the name servers.
    static func ask(
        _ host: String, port: Int, family: NIOBSDSocket.ProtocolFamily?, flags: CInt
    ) -> Result<[SocketAddress], LoadError> {
        var hints = addrinfo()
        hints.ai_family = family == nil ? AF_UNSPEC : family == .inet6 ? AF_INET6 : AF_INET
        hints.ai_protocol = CInt(IPPROTO_TCP)
        hints.ai_flags = flags
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, nil, &hints, &list)
        defer { if let list { freeaddrinfo(list) } }
        guard status == 0 else { return .failure(error(status, host)) }
        var addresses: [SocketAddress] = []
        var next = list
        while let entry = next?.pointee {
            next = entry.ai_next
            guard var address = entry.ai_addr.flatMap({ socketAddress($0, family: entry.ai_family) }) else { continue }
            address.port = port
            let known = addresses.filter { $0.protocol == address.protocol }
            if known.count < NameLookups.maximumAddressCount, !known.contains(address) { addresses.append(address) }
        }
        if addresses.isEmpty { return .failure(LoadError(.cannotFindHost, "looking up \(host): it has no address")) }
        return .success(addresses)
    }

    private static func socketAddress(_ pointer: UnsafeMutablePointer<sockaddr>, family: CInt) -> SocketAddress? {
        let raw = UnsafeRawPointer(pointer)
        return switch family {
        case AF_INET: SocketAddress(raw.loadUnaligned(as: sockaddr_in.self))
        case AF_INET6: SocketAddress(raw.loadUnaligned(as: sockaddr_in6.self))
        default: nil
        }
    }

    private static func error(_ status: CInt, _ host: String) -> LoadError {
        // The numbers are GNU's EAI_NODATA and EAI_ADDRFAMILY, which not every header defines: the name exists, but has no address
        // (of the family).
        let hasNoAddress = status == EAI_NONAME || status == -5 || status == -9
        let reason = gai_strerror(status).map { String(cString: $0) } ?? "error \(status)"
        let message = "looking up \(host): \(reason.prefix(1).lowercased())\(reason.dropFirst())"
        var error = LoadError(hasNoAddress ? .cannotFindHost : .dnsLookupFailed, message)
        error.isUnansweredLookup = !hasNoAddress
        return error
    }
}
