// SPDX-License-Identifier: Apache-2.0

/// The recorded events of a ``ScriptedServer``; tests wait for these events.
struct ServerJournal: Sendable {
    struct Connection: Sendable {
        /// The bytes that the client sent, up to 1 MiB.
        var received: [UInt8] = []
        var bytesReceived = 0
        /// The number of bytes that the socket accepted.
        var bytesWritten = 0
        /// The client's WebSocket frames, if the script reads them.
        var frames: [ClientFrame] = []
        var isClosed = false

        mutating func take(_ bytes: some Collection<UInt8>) {
            bytesReceived += bytes.count
            let room = maximumReceivedBytes - received.count
            if room > 0 { received.append(contentsOf: bytes.prefix(room)) }
        }
    }

    static let maximumReceivedBytes = 1 << 20
    var requests: [RecordedRequest] = []
    var connections: [Connection] = []
    var reached: [String: Int] = [:]
    var openGates: Set<String> = []
    var blocked: [String: [@Sendable () -> Void]] = [:]
    var errors: [String] = []

    func isAbandoned(_ request: RecordedRequest) -> Bool { request.isReset || connections[request.connection].isClosed }
}
