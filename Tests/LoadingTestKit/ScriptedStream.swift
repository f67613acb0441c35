// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A request of a ``ScriptedHTTP2Connection``, and the script of its reply.
final class ScriptedStream: ScriptCarrier {
    private static let frameSize = 16_384
    private static let connectionFields: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade",
    ]

    /// How much content the client accepts on this stream.
    var window: Int
    private let number: UInt32
    private weak var connection: ScriptedHTTP2Connection?
    private let journal: Watched<ServerJournal>
    private var request = RecordedRequest()
    private var run: ScriptRun?
    /// The content that is being sent: its rest, the whole, how often the whole follows, and whether the response then ends.
    private var rest: ArraySlice<UInt8> = []
    private var piece: [UInt8] = []
    private var times = 0
    private var ends = false
    private var isWriting = false

    init(_ number: UInt32, of connection: ScriptedHTTP2Connection, window: Int, journal: Watched<ServerJournal>) {
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
        switch effect {
        case .head(let status, let fields, let content, let ends):
            let isOver = ends && content.isEmpty && status >= 200
            let head = fieldBlock([(":status", "\(status)")] + fields, ends: isOver)
            send(content, times: content.isEmpty ? 0 : 1, ends: ends, after: head)
        case .content(let bytes, let times):
            guard !bytes.isEmpty else { return }
            send(bytes, times: times, ends: false, after: [])
        case .end(let trailers):
            let last = HTTP2Step.bytes(of: .data, flags: .endStream, stream: Int(number))
            send([], times: 0, ends: false, after: trailers.isEmpty ? last : fieldBlock(trailers, ends: true))
        case .fail:
            run.stop()
            connection?.send(
                HTTP2Step.bytes(
                    of: .resetStream, stream: Int(number), HTTP2Step.bytes(of: HTTP2Frame.ErrorCode.internalError.rawValue)))
        case .nonsense:
            // An indexed field with the index 0 (RFC 7541, section 6.1).
            send([], times: 0, ends: false, after: HTTP2Step.bytes(of: .headers, flags: .endHeaders, stream: Int(number), [0x80]))
        case .write, .writeSlowly, .repeat, .readFrames:
            journal.change { $0.errors.append("HTTP/2 cannot perform \(effect)") }
            run.stop()
            _ = connection?.perform(.close)
        default: _ = connection?.perform(effect)
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
            bytes += HTTP2Step.bytes(of: .data, flags: ends && !isUnfinished ? .endStream : [], stream: Int(number), part)
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

    /// The frames of a field section; its names are in lower case, and its values have no white space around them.
    private func fieldBlock(_ fields: SocketEffect.Fields, ends: Bool) -> [UInt8] {
        func string(_ text: String) -> [UInt8] { HPACKBytes.integer(text.utf8.count, prefix: 7, first: 0) + text.utf8 }
        var block: [UInt8] = []
        for (name, value) in fields where !Self.connectionFields.contains(name.lowercased()) {
            block += [0] + string(name.lowercased()) + string(value.trimmingCharacters(in: .whitespaces))
        }
        var frames: [UInt8] = []
        for start in stride(from: 0, to: max(block.count, 1), by: Self.frameSize) {
            let end = min(start + Self.frameSize, block.count)
            var flags: HTTP2Frame.Flags = end == block.count ? .endHeaders : []
            if start == 0, ends { flags.insert(.endStream) }
            frames += HTTP2Step.bytes(
                of: start == 0 ? .headers : .continuation, flags: flags, stream: Int(number), Array(block[start..<end]))
        }
        return frames
    }
}
