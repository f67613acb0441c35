//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials

/// A service of the local network (RFC 6763), by the parts of its name.
package struct ServiceName: Sendable, Hashable {
    /// Its own ("Office printer").
    package let name: String
    /// With the protocol ("_ipp._tcp"), without a dot at its end.
    package let type: String
    /// Without a dot at its end; empty for the default.
    package let domain: String

    package init(name: String, type: String, domain: String) {
        self.name = name
        self.type = Self.plain(type)
        self.domain = Self.plain(domain)
    }

    private static func plain(_ text: String) -> String { text.hasSuffix(".") ? String(text.dropLast()) : text }
}

/// What a stream task's load is told before it begins.
package struct StreamOrder: Sendable {
    /// Which has to be found before it is known where the stream leads.
    package let service: ServiceName?
    /// A name or an address, an IPv6 address without brackets; empty where there is a service to be found.
    package let host: String
    package let port: Int
    /// In place of what a look-up of the host would find; empty for that.
    package let addresses: [String]
    /// What the app said before the load began, in its order.
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

/// What the app says on a byte stream; reads and writes have numbers of the client's own.
package enum StreamCommand: Sendable {
    /// Reads at least `minimum` bytes, unless the stream ends before, and `maximum` at most; nil `timeout` waits as long as it takes, in
    /// seconds.
    case read(Int, minimum: Int, maximum: Int, timeout: Double?)
    case write(Int, Data, timeout: Double?)
    /// Closes the reading side behind the reads that were asked for before.
    case closeRead
    /// Refuses the reads that wait, and closes the reading side.
    case stopReading
    /// Closes the writing side behind the writes that were asked for before.
    case closeWrite
    /// Begins TLS behind all that was asked for before.
    case secure
    /// Says ``StreamEvent/captured`` when all that was asked for before is done.
    case capture
}

/// What comes of a byte stream, in order.
package enum StreamEvent: Sendable {
    /// What a read came to; nil data at the end of the stream where there was none left.
    case read(Int, Data?, isAtEnd: Bool)
    case wrote(Int)
    /// A read or write came to nothing, and the stream may go on.
    case failed(Int, LoadError)
    /// Nothing more can be read: the peer has ended its side, or the app closed this one.
    case readClosed
    case writeClosed
    /// A network came up by which the peer may be reached better.
    case foundBetterRoute
    case captured
}
