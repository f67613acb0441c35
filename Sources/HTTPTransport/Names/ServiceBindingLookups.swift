// SPDX-License-Identifier: Apache-2.0

import HTTPRules
package import HTTPWire
package import LoadingModel
package import NIOCore
import TransportMachines

/// Looks up where servers speak HTTP/3, for one session.
///
/// A slow lookup of a session does not delay those of other sessions. Identical lookups are one.
package final class ServiceBindingLookups: Sendable {
    package typealias Answer = Result<[HTTPSEndpoint], LoadError>

    private let source: ServiceBindingSource
    private let options: ConnectionOptions
    private let owner = NameLookups.newOwner()

    package init(_ source: ServiceBindingSource, options: ConnectionOptions) {
        self.source = source
        self.options = options
    }

    /// Looks up where a server speaks HTTP/3.
    ///
    /// - Parameters:
    ///   - origin: The host and port of the server's URL.
    ///   - loop: The loop on which `reply` is called.
    ///   - reply: Receives the places in the order of preference, or none if no record names one; a failure if no name server
    ///     answered. It is called once, after this method has returned, or never if the lookup is cancelled in time.
    /// - Returns: A function that cancels the lookup, for any thread; or nil if nothing is looked up, in which case `reply` is not
    ///   called.
    package func lookUp(
        _ origin: ServerName, on loop: any EventLoop, reply: @escaping @Sendable (Answer) -> Void
    ) -> (@Sendable () -> Void)? {
        guard let question = question(origin), source.isAvailable else { return nil }
        let call = ServiceBindingSource.Lookups.Call(on: loop, reply: reply)
        let caller = source.lookups.want(question, call, owner)
        return { [source] in
            call.cancel()
            source.lookups.leave(caller)
        }
    }

    /// Returns what is known about a server from an earlier lookup; nil if a lookup is necessary or impossible.
    package func known(_ origin: ServerName) -> [HTTPSEndpoint]? {
        question(origin).flatMap { try? source.lookups.knownAnswer(to: $0)?.get() }
    }

    /// Discards the cached answers.
    package func forget() { source.lookups.forget() }

    private func question(_ origin: ServerName) -> ServiceBindingSource.Lookups.Machine.Question? {
        guard Self.mayAsk(for: origin, options) else { return nil }
        return .init(Self.normalized(origin.host), .services(port: origin.port))
    }

    private static func normalized(_ host: String) -> String {
        (host.hasSuffix(".") ? String(host.dropLast()) : host).lowercased()
    }

    /// Whether name servers may know where a server is: its host is a name of the public DNS, and the session's options do not say
    /// where it is.
    package static func mayAsk(for origin: ServerName, _ options: ConnectionOptions) -> Bool {
        guard AddressKind.named(origin.host) == nil else { return false }
        let name = normalized(origin.host)
        // Names with one label are of the local network, and searched for in its domains. The other names are not of the DNS, or
        // must not be asked for (RFC 6761, section 6.4; RFC 6762, section 3; RFC 7686, section 2).
        guard name.utf8.contains(UInt8(ascii: ".")), !["local", "invalid", "onion"].contains(where: { name.hasSuffix(".\($0)") })
        else { return false }
        guard ServiceBindingSearch(host: name, port: origin.port) != nil, options.unixSocketPath == nil else { return false }
        let destination = options.destination(host: origin.host, port: origin.port)
        return destination == (origin.host, origin.port)
            && options.configuredAddresses(host: origin.host, port: origin.port) == nil
    }
}
