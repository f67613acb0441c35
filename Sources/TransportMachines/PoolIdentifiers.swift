// SPDX-License-Identifier: Apache-2.0

/// An identifier that this process assigns, in sequence.
///
/// An attacker cannot choose these numbers, so tables keyed by them need no protection against chosen collisions. The cheaper hash
/// matters because a request does half a dozen lookups.
package protocol NumberedIdentifier: Hashable, Sendable {
    var number: Int { get }
}

extension NumberedIdentifier {
    /// The seed differs for each table, so that copying one table to another in iteration order does not cluster.
    // The standard library's integers implement this requirement of `Hashable` to avoid a `Hasher`; it is public, with this name.
    // swift-format-ignore: NoLeadingUnderscores
    @inlinable
    package func _rawHashValue(seed: Int) -> Int {
        let product = UInt64(truncatingIfNeeded: number ^ seed) &* 0x9e37_79b9_7f4a_7c15
        return Int(truncatingIfNeeded: product ^ (product >> 32))
    }
}

/// Identifies one request's wait for a connection; the pool's shell assigns them.
package struct LeaseID: NumberedIdentifier {
    package let number: Int

    @inlinable
    package init(_ number: Int) { self.number = number }
}

/// Identifies a connection from the start of its dial; `PoolMachine` assigns them and never reuses a number.
package struct ConnectionID: NumberedIdentifier {
    package let number: Int

    @inlinable
    package init(_ number: Int) { self.number = number }
}

/// Identifies the set of requests that may share a connection: scheme, host, port and whatever else the shell interns with them.
package struct OriginID: NumberedIdentifier {
    package let number: Int

    @inlinable
    package init(_ number: Int) { self.number = number }
}
