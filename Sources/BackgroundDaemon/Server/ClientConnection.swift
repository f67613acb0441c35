// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import CLoadingSystem
import HTTPRules
import LibC
import LoadingModel
import NIOCore

/// Receives what happens at the connections of programs; called on their loop.
protocol ConnectionOwner: AnyObject, Sendable {
    func take(_ event: ClientConnection.Event, of connection: ClientConnection)
}

/// A program at the other end of the socket.
///
/// A program's messages are processed on the desk's loop, which all connections share: a connection that sends much takes turns
/// with the others, and a connection whose program does not read is closed. Closing loses nothing, because everything is sent
/// again when the program reconnects.
///
/// Sendable because all mutable state is confined to the desk's event loop; `send` and `close` switch to that loop.
final class ClientConnection: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer

    enum Event: Sendable {
        case opened, closed
        /// The number of bytes of incomplete messages, or of bytes that the program has not read, has changed by this number.
        case pending(Int), unread(Int)
        /// A message after hello, and its bytes.
        case message(ClientMessage, [UInt8])
        case refused(reason: String)
    }

    /// The maximum number of bytes that the program has not read.
    private static let outgoingLimit = 64 << 20
    /// The seconds within which a connection must send its first message after hello.
    private static let patience = 10
    /// The maximum size of a hello message in bytes.
    private static let helloLimit = 4096

    /// The path of the program's executable; never empty.
    let program: String
    let process: Int32
    private let owner: any ConnectionOwner
    private let channel: any Channel
    private var reader = FrameReader(limit: helloLimit)
    private var isUsed = false
    /// The number of bytes of incomplete messages.
    private(set) var pendingBytes = 0
    private(set) var role: ClientMessage.Role?
    /// The tasks that were accepted in this turn of the loop.
    private var accepted: [TaskID] = []
    private var outgoing: [UInt8] = []
    private var isFlushing = false
    private var waitingBytes = 0
    private var onWritten: [@Sendable () -> Void] = []
    private var isOver = false
    private var isRefused = false
    /// The session that the connection has joined.
    var session: Session?
    /// Whether the connection's process is about to be killed; if so, its messages are ignored.
    var isDoomed = false

    init(_ channel: any Channel, peer: cls_peer, program: String, owner: any ConnectionOwner) {
        self.channel = channel
        self.program = program
        self.owner = owner
        process = peer.process
    }

    /// Whether the process has ended, although its connection may still be open; another process may have the same ID.
    var isPeerGone: Bool { ProgramFile.of(process) != program }

    // MARK: Receiving

    func channelActive(context: ChannelHandlerContext) {
        owner.take(.opened, of: self)
        channel.eventLoop.scheduleTask(in: .seconds(Int64(Self.patience))) {
            if !self.isUsed { self.close() }
        }
    }

    /// Receives at most 64 KiB per turn, so that other connections get their turn.
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        do {
            let bytes = unwrapInboundIn(data)
            var rest = bytes.readableBytesView[...]
            while role == nil, !isOver, !isRefused, !rest.isEmpty {
                // Reads one byte at a time: the bytes after hello belong to the next reader, which has another limit.
                reader.append(rest.prefix(1))
                rest = rest.dropFirst()
                guard let payload = try reader.next() else { continue }
                receive(payload)
                reader = FrameReader()
            }
            reader.append(rest)
            while !isOver, !isRefused, let payload = try reader.next() { receive(payload) }
            notePending(reader.pendingBytes)
        } catch {
            refuse(.malformed, "\(error)")
        }
    }

    private func notePending(_ count: Int) {
        let change = count - pendingBytes
        guard change != 0 else { return }
        pendingBytes = count
        owner.take(.pending(change), of: self)
    }

    private func noteUnread(_ change: Int) { owner.take(.unread(change), of: self) }

    /// Closes the connection, discarding unsent data.
    func abandon() {
        guard !isOver else { return }
        isOver = true
        noteUnread(-outgoing.count)
        outgoing = []
        channel.eventLoop.execute { self.channel.close(promise: nil) }
    }

    private func receive(_ payload: [UInt8]) {
        let message: ClientMessage
        do throws(MessageFailure) {
            message = try MessageCoding.decodeClientMessage(payload)
        } catch {
            return refuse(.malformed, "a message cannot be decoded: \(error)")
        }
        guard role != nil else { return welcome(message) }
        isUsed = true
        owner.take(.message(message, payload), of: self)
    }

    private func welcome(_ message: ClientMessage) {
        guard case .hello(let version, let role) = message else { return refuse(.malformed, "the first message must be hello") }
        let supported = "urlsessiond supports protocol version \(MessageCoding.version), but the program needs \(version)"
        guard version <= MessageCoding.version else { return refuse(.version, supported) }
        guard version == MessageCoding.version else {
            return refuse(.outdated, "\(supported): build the program with URLLoading \(LibraryVersion.text) or newer")
        }
        guard role == .session || ProgramFile.mayManage(program) else {
            return refuse(.malformed, ProgramFile.managerRefusal(of: program))
        }
        self.role = role
        send(.welcome(version: version))
    }

    func channelInactive(context: ChannelHandlerContext) {
        isOver = true
        notePending(0)
        noteUnread(-outgoing.count)
        outgoing = []
        onWritten = []
        owner.take(.closed, of: self)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    // MARK: Sending

    /// Sends a message; called on any thread.
    func send(_ message: DaemonMessage) {
        if let payload = try? MessageCoding.encode(message) { send(payload) }
    }

    /// Sends an encoded message; called on any thread.
    func send(_ payload: [UInt8]) {
        if channel.eventLoop.inEventLoop { return enqueue(payload) }
        channel.eventLoop.execute { self.enqueue(payload) }
    }

    /// Confirms a task, together with the other tasks that are accepted in this turn of the loop.
    func accept(_ task: TaskID) {
        accepted.append(task)
        guard accepted.count == 1 else { return }
        channel.eventLoop.execute {
            self.send(.accepted(self.accepted))
            self.accepted = []
        }
    }

    private func enqueue(_ payload: [UInt8]) {
        guard !isOver else { return }
        let frame = FrameReader.frame(payload)
        outgoing += frame
        noteUnread(frame.count)
        guard !isOver else { return }
        guard unreadBytes <= Self.outgoingLimit else { return close() }
        guard !isFlushing else { return }
        isFlushing = true
        channel.eventLoop.execute { self.flush() }
    }

    private func flush() {
        isFlushing = false
        guard !outgoing.isEmpty else { return }
        let count = outgoing.count
        let buffer = ByteBuffer(bytes: outgoing)
        outgoing = []
        waitingBytes += count
        channel.writeAndFlush(buffer).whenComplete { _ in
            self.waitingBytes -= count
            self.noteUnread(-count)
            guard self.waitingBytes == 0, self.outgoing.isEmpty else { return }
            let actions = self.onWritten
            self.onWritten = []
            for action in actions { action() }
        }
    }

    /// The number of bytes that the program has not read.
    var unreadBytes: Int { outgoing.count + waitingBytes }

    /// Calls back when the system has taken all sent data.
    func whenWritten(_ action: @escaping @Sendable () -> Void) {
        if waitingBytes == 0, outgoing.isEmpty || isOver { action() } else { onWritten.append(action) }
    }

    /// Sends the reason, and closes the connection.
    func refuse(_ refusal: DaemonMessage.Refusal, _ reason: String) {
        guard !isOver, !isRefused else { return }
        isRefused = true
        reader = FrameReader()
        notePending(0)
        owner.take(.refused(reason: reason), of: self)
        send(.refused(refusal, reason))
        close()
    }

    func close() {
        channel.eventLoop.execute {
            self.flush()
            self.isOver = true
            self.channel.close(promise: nil)
        }
    }
}
