//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Names one request's wish for a connection; the pool's shell numbers them.
package struct LeaseID: Hashable, Sendable {
    package let number: Int

    @inlinable
    package init(_ number: Int) { self.number = number }
}

/// Names a connection from the moment its dial begins; `PoolMachine` numbers them and never uses a number twice.
package struct ConnectionID: Hashable, Sendable {
    package let number: Int

    @inlinable
    package init(_ number: Int) { self.number = number }
}

/// Names what connections are interchangeable for: scheme, host, port and whatever else the shell interns with them.
package struct OriginID: Hashable, Sendable {
    package let number: Int

    @inlinable
    package init(_ number: Int) { self.number = number }
}
