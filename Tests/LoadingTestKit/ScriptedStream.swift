// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A connection whose requests are ``ScriptedStream``s.
protocol ScriptedStreamCarrier: AnyObject {
    /// The version, for messages.
    var name: String { get }
    /// Takes as much of the connection's window as is left, up to `count` bytes.
    func takeWindow(_ count: Int) -> Int
    /// Sends bytes that the functions below returned, and calls back when the socket has accepted them.
    func send(_ bytes: [UInt8], then done: @escaping () -> Void)
    /// Performs an effect that concerns the connection as such; returns false for any other effect.
    func perform(_ effect: SocketEffect) -> Bool

    func content(_ bytes: [UInt8], of stream: Int, ends: Bool) -> [UInt8]
    func fields(_ fields: SocketEffect.Fields, of stream: Int, ends: Bool) -> [UInt8]
    func end(of stream: Int) -> [UInt8]
    func failure(of stream: Int) -> [UInt8]
    func nonsense(of stream: Int) -> [UInt8]
}

/// A request of a ``ScriptedHTTP2Connection`` or ``ScriptedHTTP3Connection``, and the script of its reply.
final class ScriptedStream: ScriptCarrier {
    private static let frameSize = 16_384
    private static let connectionFields: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade",
    ]

    /// How much content the client accepts on this stream.
    var window: Int
    private let number: Int
    private weak var connection: (any ScriptedStreamCarrier)?
    private let journal: Watched<ServerJournal>
    private var request = RecordedRequest()
    private var run: ScriptRun?
    /// The content that is being sent: its rest, the whole, how often the whole follows, and whether the response then ends.
    private var rest: ArraySlice<UInt8> = []
    private var piece: [UInt8] = []
    private var times = 0
    private var ends = false
    private var isWriting = false

    init(_ number: Int, of connection: any ScriptedStreamCarrier, window: Int, journal: Watched<ServerJournal>) {
        self.number = number
        self.connection = connection
        self.window = window
        self.journal = journal
    }

    // MARK: The request

    func begin(_ request: RecordedRequest, _ run: ScriptRun) {
        self.request = request
        self.run = run
        run.takeHead(request)
        self.request.order = run.order
        run.advance()
    }

    func takeBody(_ bytes: ArraySlice<UInt8>) {
        guard let run else { return }
        request.takeBody(bytes)
        run.takeBody(total: request.bodyLength)
        run.advance()
    }

    func takeEnd(trailers: [(name: String, value: String)] = []) {
        guard let run else { return }
        request.trailers = trailers
        request.isComplete = true
        run.takeEnd(request)
        run.advance()
    }

    /// The client reset the stream, or the connection ended.
    func end(isReset: Bool) {
        guard run != nil else { return }
        run?.stop()
        run = nil
        request.isReset = isReset
        journal.change { [request] in $0.requests[request.order] = request }
    }

    // MARK: The response

    func perform(_ effect: SocketEffect, of run: ScriptRun) {
        guard let connection else { return }
        switch effect {
        case .head(let status, let fields, let content, let ends):
            let isOver = ends && content.isEmpty && status >= 200
            let head = connection.fields([(":status", "\(status)")] + Self.written(fields), of: number, ends: isOver)
            send(content, times: content.isEmpty ? 0 : 1, ends: ends, after: head)
        case .content(let bytes, let times):
            guard !bytes.isEmpty else { return }
            send(bytes, times: times, ends: false, after: [])
        case .end(let trailers):
            let fields = Self.written(trailers)
            let last = fields.isEmpty ? connection.end(of: number) : connection.fields(fields, of: number, ends: true)
            send([], times: 0, ends: false, after: last)
        case .fail:
            run.stop()
            connection.send(connection.failure(of: number)) {}
        case .nonsense: send([], times: 0, ends: false, after: connection.nonsense(of: number))
        case .write, .writeSlowly, .repeat, .readFrames:
            journal.change { $0.errors.append("\(connection.name) cannot perform \(effect)") }
            run.stop()
            _ = connection.perform(.close)
        default: _ = connection.perform(effect)
        }
    }

    private func send(_ content: [UInt8], times: Int, ends: Bool, after head: [UInt8]) {
        run?.waiting = .carrier
        (rest, piece, self.times, self.ends) = ([], content, times, ends)
        write(after: head)
    }

    /// Writes as much as the windows allow, but not much at a time.
    private func write(after head: [UInt8] = []) {
        var bytes = head
        while bytes.count < 4 * Self.frameSize, isUnfinished {
            if rest.isEmpty {
                rest = piece[...]
                if times < .max { times -= 1 }
            }
            let count = connection?.takeWindow(min(window, rest.count, Self.frameSize)) ?? 0
            guard count > 0 else { break }
            window -= count
            let part = Array(rest.prefix(count))
            rest = rest.dropFirst(count)
            bytes += connection?.content(part, of: number, ends: ends && !isUnfinished) ?? []
        }
        guard !bytes.isEmpty else { return }
        isWriting = true
        connection?.send(bytes) { [self] in
            isWriting = false
            if isUnfinished { write() } else { run?.go() }
        }
    }

    private var isUnfinished: Bool { !rest.isEmpty || times > 0 }

    /// The client has enlarged a window.
    func resume() {
        if isUnfinished, !isWriting, run != nil { write() }
    }

    /// The fields of a message: their names are in lower case, and their values have no white space around them.
    private static func written(_ fields: SocketEffect.Fields) -> SocketEffect.Fields {
        fields.compactMap { name, value in
            connectionFields.contains(name.lowercased()) ? nil : (name.lowercased(), value.trimmingCharacters(in: .whitespaces))
        }
    }
}
