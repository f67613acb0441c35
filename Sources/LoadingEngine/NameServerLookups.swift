// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingModel
import NIOCore
import SystemLibraries
import TransportMachines

/// Host name lookups by a session's own name servers, instead of the system's resolver.
///
/// The lookups have their own threads, and their own cache, because results from the system's resolver must not be used. Results
/// are cached for the TTL that the servers specify.
enum NameServerLookups {
    static func resolver(_ servers: [String]) -> SystemResolver {
        let list = list(servers)
        let addresses = NameLookups(threads: "url-dns") { host, family in
            guard let list else {
                return failure(host, "one of the name servers \(servers) is not an IP address", .cannotConnectToHost)
            }
            return switch CAres.lookUp(host, isV6: family == .inet6, servers: list) {
            case .addresses(let addresses, let seconds): NameLookups.Finding(addresses, of: host, seconds: seconds)
            case .failed(let reason): failure(host, "asking \(list): \(reason)")
            }
        }
        return SystemResolver(addresses)
    }

    /// Returns the servers as c-ares expects them; nil if one of them is not an IP address.
    static func list(_ servers: [String]) -> String? {
        servers.allSatisfy(isServer) ? servers.joined(separator: ",") : nil
    }

    /// Whether the text is the address of a server: `192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1` or `[2001:db8::1]:5353`.
    private static func isServer(_ text: String) -> Bool {
        if isAddress(text) { return true }
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else {
            return false
        }
        let host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { return isAddress(String(host.dropFirst().dropLast())) }
        return !host.contains(":") && isAddress(String(host))
    }

    private static func isAddress(_ text: String) -> Bool { (try? SocketAddress(ipAddress: text, port: 0)) != nil }

    private static func failure(
        _ host: String, _ reason: String, _ kind: LoadError.Kind = .dnsLookupFailed
    ) -> NameLookups.Finding {
        NameLookups.Finding(.failure(LoadError(kind, "looking up \(host): \(reason)")), lifetime: 0)
    }
}
