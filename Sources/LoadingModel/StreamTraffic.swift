// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The name of a DNS-SD service instance (RFC 6763), split into its parts.
package struct ServiceName: Sendable, Hashable {
    /// The instance name, such as "Office printer".
    package let name: String
    /// The type with the protocol ("_ipp._tcp"), without a trailing dot.
    package let type: String
    /// The domain without a trailing dot; empty for the default domain.
    package let domain: String

    package init(name: String, type: String, domain: String) {
        self.name = name
        self.type = Self.normalized(type)
        self.domain = Self.normalized(domain)
    }

    private static func normalized(_ text: String) -> String { text.hasSuffix(".") ? String(text.dropLast()) : text }
}

/// The parameters of a stream task's load.
package struct StreamOrder: Sendable {
    /// The service to resolve before connecting.
    package let service: ServiceName?
    /// A host name or an IP address, IPv6 without brackets; empty if there is a service to resolve.
    package let host: String
    package let port: Int
    /// The addresses to use instead of a host name lookup; if empty, the host is looked up.
    package let addresses: [String]
    /// The app's commands from before the load began, in order.
    package var queued: [StreamCommand] = []

    package init(host: String, port: Int, addresses: [String] = []) {
        service = nil
        self.host = host
        self.port = port
        self.addresses = addresses
    }

    package init(service: ServiceName) {
        self.service = service
        host = ""
        port = 0
        addresses = []
    }
}

/// The app's commands for a byte stream; the client numbers its reads and writes.
package enum StreamCommand: Sendable {
    /// Reads at least `minimum` bytes, unless the stream ends first, and at most `maximum`; `timeout` is in seconds, nil waits
    /// without limit.
    case read(Int, minimum: Int, maximum: Int, timeout: Double?)
    case write(Int, Data, timeout: Double?)
    /// Closes the read side after all earlier reads.
    case closeRead
    /// Fails the pending reads and closes the read side.
    case stopReading
    /// Closes the write side after all earlier writes.
    case closeWrite
    /// Starts TLS after all earlier commands.
    case secure
    /// Reports ``StreamEvent/captured`` after all earlier commands.
    case capture
}

/// The events of a byte stream, in order.
package enum StreamEvent: Sendable {
    /// The result of a read; nil data if the stream ended and no bytes are left.
    case read(Int, Data?, isAtEnd: Bool)
    case wrote(Int)
    /// A read or write failed; the stream may still be usable.
    case failed(Int, LoadError)
    /// No more bytes can be read: the peer closed its write side, or the app closed the read side.
    case readClosed
    case writeClosed
    /// A network with a better route to the peer became available.
    case foundBetterRoute
    case captured
}
