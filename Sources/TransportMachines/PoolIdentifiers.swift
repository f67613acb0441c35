//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// A name that this process gives out itself, in order.
///
/// Nobody can choose such numbers so that they collide, so tables of them go without the keyed hash that guards those of other keys: a
/// request looks up half a dozen.
package protocol NumberedIdentifier: Hashable, Sendable {
    var number: Int { get }
}

extension NumberedIdentifier {
    /// The seed is the table's own, so that one filled in the order of another does not bunch up.
    // The requirement by which the standard library's own numbers do without a `Hasher`; it is public there, under this name.
    // swift-format-ignore: NoLeadingUnderscores
    @inlinable
    package func _rawHashValue(seed: Int) -> Int {
        let product = UInt64(truncatingIfNeeded: number ^ seed) &* 0x9e37_79b9_7f4a_7c15
        return Int(truncatingIfNeeded: product ^ (product >> 32))
    }
}

/// Names one request's wish for a connection; the pool's shell numbers them.
package struct LeaseID: NumberedIdentifier {
    package let number: Int

    @inlinable
    package init(_ number: Int) { self.number = number }
}

/// Names a connection from the moment its dial begins; `PoolMachine` numbers them and never uses a number twice.
package struct ConnectionID: NumberedIdentifier {
    package let number: Int

    @inlinable
    package init(_ number: Int) { self.number = number }
}

/// Names what connections are interchangeable for: scheme, host, port and whatever else the shell interns with them.
package struct OriginID: NumberedIdentifier {
    package let number: Int

    @inlinable
    package init(_ number: Int) { self.number = number }
}
