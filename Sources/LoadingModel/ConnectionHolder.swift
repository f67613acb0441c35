//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// For whom a connection stands: a task's own delegate that judged the server, or an identity that the server knows the
/// connection by (NTLM, Negotiate).
///
/// Two are the same only if they are one object.
package final class ConnectionHolder: Sendable, Hashable {
    package init() {}

    package static func == (left: ConnectionHolder, right: ConnectionHolder) -> Bool { left === right }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
