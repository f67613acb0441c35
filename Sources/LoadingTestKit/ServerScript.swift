//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// What a ``ScriptedServer`` does.
///
/// The closures run on its event loops.
struct ServerScript: Sendable {
    /// Effects for a new connection, before anything is read.
    var greeting: @Sendable (_ connection: Int) -> [SocketEffect]
    /// The answer when only the head has come; nil leaves the answer to ``reply``.
    var early: @Sendable (RecordedRequest) throws -> ScriptedReply?
    /// The answer to a complete request.
    var reply: @Sendable (RecordedRequest) throws -> ScriptedReply
}
