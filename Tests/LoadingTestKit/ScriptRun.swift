// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOPosix
import NIOSSL

#if canImport(Glibc)
import Glibc
#endif

/// The part of a ``ScriptedServer`` that knows a version of HTTP: performs the effects that send something.
protocol ScriptCarrier: AnyObject {
    /// Performs an effect; if the next effect must wait for it, sets ``ScriptRun/waiting`` and calls ``ScriptRun/go()`` later.
    func perform(_ effect: SocketEffect, of run: ScriptRun)
}

/// Records requests, and performs the effects of their replies in order, each after the previous one is done.
///
/// A connection of HTTP/1.1 is one run, and each stream of a later version is one.
final class ScriptRun {
    enum Waiting {
        case nothing, carrier, bytes(Int), body(Int), frames(Int), requestEnd, forever
    }

    var waiting = Waiting.nothing
    /// The number of bytes and of WebSocket frames that the connection received.
    var bytesReceived = 0
    var frameCount = 0
    private(set) var effects: [SocketEffect] = []
    /// The position of the current request in the journal.
    private(set) var order = 0
    private let script: ServerScript
    private let journal: Watched<ServerJournal>
    private let loop: any EventLoop
    private weak var carrier: (any ScriptCarrier)?
    /// Whether the current request was answered when its head arrived.
    private var isAnswered = false
    private var bodyLength = 0
    private var isEnded = true

    init(_ script: ServerScript, _ journal: Watched<ServerJournal>, on loop: any EventLoop, by carrier: any ScriptCarrier) {
        self.script = script
        self.journal = journal
        self.loop = loop
        self.carrier = carrier
    }

    // MARK: Requests

    func takeHead(_ request: RecordedRequest) {
        bodyLength = 0
        isEnded = false
        script.run?.countRequest()
        let recorded = journal.change { journal in
            var request = request
            request.order = journal.requests.count
            journal.requests.append(request)
            return request
        }
        order = recorded.order
        let early = answer(recorded, script.early)
        isAnswered = early != nil
        if let early {
            effects += early.effects
        } else if request.header("Expect")?.lowercased() == "100-continue" {
            effects.append(.head(100))
        }
    }

    func takeBody(total: Int) { bodyLength = total }

    func takeEnd(_ request: RecordedRequest) {
        isEnded = true
        bodyLength = request.bodyLength
        if !isAnswered, let reply = answer(request, script.reply) { effects += reply.effects }
        journal.change { $0.requests[request.order] = request }
    }

    private func answer(
        _ request: RecordedRequest, _ make: (RecordedRequest) throws -> ScriptedReply?
    ) -> ScriptedReply? {
        do {
            return try make(request)
        } catch {
            journal.change { $0.errors.append("the script failed on connection \(request.connection): \(error)") }
            return [.close]
        }
    }

    // MARK: Effects

    func begin(with effects: [SocketEffect]) {
        self.effects = effects
        advance()
    }

    /// Performs the effect before all others.
    func repeatNext(_ effect: SocketEffect) { effects.insert(effect, at: 0) }

    /// Performs no further effects.
    func stop() {
        waiting = .forever
        effects = []
    }

    func advance() {
        while let carrier {
            switch waiting {
            case .nothing: break
            case .carrier, .forever: return
            case .bytes(let count): guard bytesReceived >= count else { return }
            case .body(let count): guard bodyLength >= count || isEnded else { return }
            case .frames(let count): guard frameCount >= count else { return }
            case .requestEnd: guard isEnded else { return }
            }
            waiting = .nothing
            guard !effects.isEmpty else { return }
            perform(effects.removeFirst(), by: carrier)
        }
    }

    /// Continues after an effect that took time.
    func go() {
        if case .forever = waiting { return }
        waiting = .nothing
        advance()
    }

    private func perform(_ effect: SocketEffect, by carrier: any ScriptCarrier) {
        switch effect {
        case .awaitBytes(let count): waiting = .bytes(count)
        case .awaitBody(let count): waiting = .body(count)
        case .awaitFrames(let count): waiting = .frames(count)
        case .awaitRequestEnd: waiting = .requestEnd
        case .gate(let name): wait(at: name)
        case .reach(let name): journal.change { $0.reached[name, default: 0] += 1 }
        case .pause(let milliseconds):
            waiting = .carrier
            loop.assumeIsolated().scheduleTask(in: .milliseconds(milliseconds)) { self.go() }
        case .stall: waiting = .forever
        default: carrier.perform(effect, of: self)
        }
    }

    private func wait(at gate: String) {
        let bound = NIOLoopBound(self, eventLoop: loop)
        let mayPass = journal.change { [loop] journal in
            journal.reached[gate, default: 0] += 1
            if journal.openGates.contains(gate) { return true }
            journal.blocked[gate, default: []].append { loop.execute { bound.value.go() } }
            return false
        }
        waiting = mayPass ? .nothing : .carrier
    }
}

extension ChannelHandlerContext {
    /// Writes bytes, and calls back when the socket has accepted them.
    func write(
        _ bytes: [UInt8], of number: Int, _ journal: Watched<ServerJournal>, then done: @escaping () -> Void
    ) {
        let loop = eventLoop.assumeIsolated()
        let written = eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenSuccess {
            journal.change { $0.connections[number].bytesWritten += bytes.count }
            loop.execute(done)
        }
        writeAndFlush(NIOAny(channel.allocator.buffer(bytes: bytes)), promise: written)
    }

    /// Performs an effect that concerns the connection as such; returns false for any other effect.
    func perform(_ effect: SocketEffect) -> Bool {
        switch effect {
        case .close: close(promise: nil)
        case .closeAbruptly: closeTransport()
        case .shutdownOutput: close(mode: .output, promise: nil)
        case .reset:
            _ = (channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
            closeTransport()
        case .stopReading: _ = channel.setOption(.autoRead, value: false)
        case .startReading: _ = channel.setOption(.autoRead, value: true)
        default: return false
        }
        return true
    }

    /// Closes the socket without close_notify.
    private func closeTransport() {
        if let secure = try? pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self) {
            secure.close(promise: nil)
        } else {
            close(promise: nil)
        }
    }
}
