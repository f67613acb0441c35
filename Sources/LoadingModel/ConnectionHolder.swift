//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Restricts a connection to its holder: a task whose own delegate judged the server, or an identity for which the server has
/// authenticated the connection (NTLM, Negotiate).
///
/// Two holders are equal only if they are the same object.
package final class ConnectionHolder: Sendable, Hashable {
    package init() {}

    package static func == (left: ConnectionHolder, right: ConnectionHolder) -> Bool { left === right }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
