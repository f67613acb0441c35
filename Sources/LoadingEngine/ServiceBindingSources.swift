// SPDX-License-Identifier: Apache-2.0

package import HTTPTransport
import HTTPWire
package import LoadingModel
import SystemLibraries

/// Where sessions ask for HTTPS records: at their own name servers, with validation by DNSSEC, or at the system's name servers.
///
/// A library is opened when the first lookup needs it.
package enum ServiceBindingSources {
    /// The system's name servers, except for hosts that the system finds without them.
    static let system = ServiceBindingSource(
        threads: "url-https", except: .system, canAsk: { StubResolver.isAvailable }
    ) { name, _ in reply(StubResolver.ask(name, type: ServiceBindings.recordType)) }

    /// The system's name servers, with answers that are validated.
    static let validated = ServiceBindingSource(
        threads: "url-https-sec", canAsk: { Unbound.isAvailable }
    ) { name, _ in Unbound.ask(name, type: ServiceBindings.recordType).map(reply) ?? .unsigned }

    /// Returns lookups for a session with this policy.
    package static func lookups(_ policy: SessionPolicy) -> ServiceBindingLookups {
        let options = policy.connections ?? ConnectionOptions()
        let source =
            policy.needs.requiresDNSSEC ? validated : options.nameServers.isEmpty ? system : named(options.nameServers)
        return ServiceBindingLookups(source, options: options)
    }

    /// Returns lookups for the requests of a session that must be validated although the session does not require it.
    package static func validatedLookups(_ policy: SessionPolicy) -> ServiceBindingLookups {
        ServiceBindingLookups(validated, options: policy.connections ?? ConnectionOptions())
    }

    /// Returns a source that asks these name servers.
    private static func named(_ servers: [String]) -> ServiceBindingSource {
        let list = NameServerLookups.list(servers)
        return ServiceBindingSource(
            threads: "url-dns-https", canAsk: { list != nil && CAres.isAvailable }
        ) { name, milliseconds in
            guard let list else { return .failed("the name servers are not valid") }
            let limit = CInt(clamping: milliseconds)
            return reply(CAres.ask(name, type: ServiceBindings.recordType, servers: list, milliseconds: limit))
        }
    }

    private static func reply(_ reply: NameServerReply) -> ServiceBindingSource.Reply {
        switch reply {
        case .message(let message): .message(message)
        case .failed(let reason): .failed(reason)
        }
    }
}
