//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// What happened at a ``ScriptedServer``: what its waiters look at.
struct ServerJournal: Sendable {
    struct Connection: Sendable {
        /// What the client sent, kept up to 1 MiB.
        var received: [UInt8] = []
        var bytesReceived = 0
        /// What the socket took.
        var bytesWritten = 0
        /// The client's WebSocket frames, where the script reads such.
        var frames: [ClientFrame] = []
        var isClosed = false
    }

    static let keptBytes = 1 << 20
    var requests: [RecordedRequest] = []
    var connections: [Connection] = []
    var reached: [String: Int] = [:]
    var openGates: Set<String> = []
    var blocked: [String: [@Sendable () -> Void]] = [:]
    var errors: [String] = []
}
