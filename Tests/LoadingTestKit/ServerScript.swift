// SPDX-License-Identifier: Apache-2.0

/// The script of a ``ScriptedServer``.
///
/// The closures run on the server's event loops.
struct ServerScript: Sendable {
    /// The effects for a new connection, before anything is read.
    var greeting: @Sendable (_ connection: Int) -> [SocketEffect]
    /// The reply when only the head has arrived; nil leaves the request to ``reply``.
    var early: @Sendable (RecordedRequest) throws -> ScriptedReply?
    /// The reply to a complete request.
    var reply: @Sendable (RecordedRequest) throws -> ScriptedReply
    /// The run that counts the requests.
    var run: ScriptedRun?
}
