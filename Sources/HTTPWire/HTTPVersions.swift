// SPDX-License-Identifier: Apache-2.0

/// A set of versions of HTTP: those that a route, a session or a request allows, or that a server accepts.
///
/// A set with one member is the version that a connection has agreed on. A refusal narrows a set; nothing else says which versions
/// may be used.
package struct HTTPVersions: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    @inlinable
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The set of one version, by its major number from 1 to 8.
    @inlinable
    package init(number: Int) { rawValue = 1 << UInt8(number - 1) }

    @inlinable package static var http1: HTTPVersions { HTTPVersions(rawValue: 1) }
    @inlinable package static var http2: HTTPVersions { HTTPVersions(rawValue: 2) }
    @inlinable package static var http3: HTTPVersions { HTTPVersions(rawValue: 4) }
    /// Every version, also those that this build does not speak.
    @inlinable package static var all: HTTPVersions { HTTPVersions(rawValue: .max) }

    /// Whether a connection of some member can carry several exchanges at a time.
    @inlinable package var mayShare: Bool { !isSubset(of: .http1) }

    /// Returns the members that are also among `others`, or all if none is: a refusal never leaves nothing to try.
    package func narrowed(to others: HTTPVersions) -> HTTPVersions {
        isDisjoint(with: others) ? self : intersection(others)
    }

    /// The oldest member.
    package var oldest: HTTPVersions { HTTPVersions(rawValue: rawValue & ~(rawValue &- 1)) }

    /// The major number of the oldest member.
    package var number: Int { rawValue.trailingZeroBitCount + 1 }

    /// The name of the oldest member in ALPN and in metrics.
    package var name: String {
        switch number {
        case 1: "http/1.1"
        case 2: "h2"
        default: "h\(number)"
        }
    }

    /// The names of all members, the newest first, as a client prefers them.
    package var names: [String] {
        (1...8).reversed().map { HTTPVersions(number: $0) }.filter { contains($0) }.map(\.name)
    }
}
