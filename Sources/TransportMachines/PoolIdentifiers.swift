//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// An identifier that this process assigns, in sequence.
///
/// No attacker can choose these numbers so that they collide, so tables keyed by them do without the keyed hash that protects
/// tables with other keys: a request does half a dozen lookups.
package protocol NumberedIdentifier: Hashable, Sendable {
    var number: Int { get }
}

extension NumberedIdentifier {
    /// The seed is the table's own, so that filling one table in the order of another does not cluster.
    // The requirement by which the standard library's integers avoid a `Hasher`; it is public there, under this name.
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
