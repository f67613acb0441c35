// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The recorded events of an ``HTTP2ScriptedServer``; tests wait for these events.
struct HTTP2Journal: Sendable {
    struct Connection: Sendable {
        /// The protocol selected by ALPN.
        var `protocol`: String?
        /// The server name that the client sent (SNI).
        var serverName: String?
        var frames: [HTTP2Frame] = []
        /// How the client closed its sending side: `eof`, `close_notify`, or `tls` for a TLS error.
        var ending: String?
        var isClosed = false
    }

    var connections: [Connection] = []
    var requests: [HTTP2Request] = []
    var reached: [String: Int] = [:]
    /// The number of bytes sent on a stream when its window was exhausted.
    var blocked: [HTTP2ScriptedServer.StreamID: Int] = [:]
    /// The client's violations of RFC 9113, and errors in scripts.
    var errors: [String] = []
    /// Whether the program behind the server has ended.
    var hasEnded = false

    /// Records an event; if the event is a new request, returns the request, because it needs a response.
    mutating func take(_ event: HTTP2Event) -> HTTP2Request? {
        if event.event == .accepted { connections.append(Connection()) }
        guard let connection = event.connection, connections.indices.contains(connection) else {
            errors.append(event.text ?? "")
            return nil
        }
        let id = HTTP2ScriptedServer.StreamID(connection: connection, stream: event.stream ?? 0)
        switch event.event {
        case .accepted, .mark: break
        case .secured:
            connections[connection].protocol = event.protocol
            connections[connection].serverName = event.name
        case .frame:
            if let frame = HTTP2Frame(event) { connections[connection].frames.append(frame) }
        case .request:
            let request = HTTP2Request(
                fields: Self.fields(event), stream: id.stream, connection: connection, openCount: event.open ?? 0,
                order: requests.count)
            requests.append(request)
            return request
        case .end:
            guard let order = requests.lastIndex(where: { $0.connection == connection && $0.stream == id.stream }) else { break }
            requests[order].body = Array(event.body ?? Data())
            requests[order].bodyLength = event.length ?? 0
            requests[order].bodyHash = event.sha256 ?? ""
            requests[order].trailers = Self.fields(event)
            requests[order].isComplete = true
        case .blocked: blocked[id] = event.length ?? 0
        case .reached: reached[event.name ?? "", default: 0] += 1
        case .ending: connections[connection].ending = event.how
        case .closed: connections[connection].isClosed = true
        case .violation, .error: errors.append(event.text ?? "")
        }
        return nil
    }

    private static func fields(_ event: HTTP2Event) -> [(name: String, value: String)] {
        (event.fields ?? []).compactMap { pair in
            guard let name = pair.first, let value = pair.last else { return nil }
            return (name, value)
        }
    }
}
