// SPDX-License-Identifier: Apache-2.0

import CQUIC
import LoadingModel
import NIOCore

/// A QUIC connection on its socket: passes datagrams to the library, sends what the library writes, and keeps its timer.
///
/// Everything that is to be sent within one turn of the loop is sent together, at the end of the turn.
///
/// Confined to the loop.
final class QUICConnection {
    /// By how many nanoseconds the timer may be late, so that it is not moved for each packet.
    private static let precision: UInt64 = 1_000_000
    /// The number of batches of datagrams that are sent in one turn of the loop.
    private static let batchesPerTurn = 4
    /// How many sockets that the system has closed are replaced.
    private static let maximumReopenings = 8

    /// Kept until the connection is over.
    var owner: (any QUICConnectionOwner)?
    let loop: any EventLoop
    private(set) lazy var executor = LoopDirectory.executor(of: loop)
    private let functions: UnsafePointer<cquic_library>
    /// Nil once the connection is over.
    private var connection: OpaquePointer?
    private(set) var socket: QUICSocket?
    /// Opens another socket to the same server.
    var reopen: ((@escaping (QUICSocket?) -> Void) -> Void)?
    private var reopenCount = 0
    private let scratch: DatagramScratch
    private var timer: (task: Scheduled<Void>, at: UInt64)?
    private var isFlushDue = false
    /// Whether the library is at work; what ends the connection meanwhile waits until it has returned.
    private var isInLibrary = false
    private var pendingClose: (isApplication: Bool, code: UInt64)?
    /// How many requests the server allows in all.
    fileprivate(set) var allowedRequests: Int64 = 0
    /// The number of requests so far.
    private(set) var requestCount: Int64 = 0
    /// The first stream that the server will not process, from its GOAWAY.
    private(set) var firstUnprocessed: Int64?
    /// The maximum size of a field section that the server accepts; nil if it is not known or unlimited.
    fileprivate(set) var peerSectionLimit: Int?
    fileprivate(set) var allowsExtendedConnect = false

    init(_ library: QUICLibrary, scratch: DatagramScratch, on loop: any EventLoop) {
        functions = library.functions
        self.scratch = scratch
        self.loop = loop
    }

    deinit { if let connection { functions.pointee.destroy(connection) } }

    var isOpen: Bool { connection != nil }
    var channel: (any Channel)? { socket?.channel }

    private static func now() -> UInt64 { NIODeadline.now().uptimeNanoseconds }

    // MARK: The beginning

    /// Starts the handshake on a connected socket.
    func start(_ settings: QUICSettings, on socket: QUICSocket) throws {
        guard let local = socket.channel?.localAddress, let remote = socket.channel?.remoteAddress else {
            throw ChannelError.ioOnClosedChannel
        }
        self.socket = socket
        var failure = cquic_failure()
        let made = settings.withSettings(
            local: local, remote: remote, now: Self.now(), events: QUICEvents.table,
            context: Unmanaged.passUnretained(self).toOpaque()
        ) { functions.pointee.connect($0, &failure) }
        guard let made else { throw QUICFailure(failure) }
        connection = made
        flush()
    }

    // MARK: What the owner wants

    /// Begins a request; the fields are copied.
    func request(_ fields: UnsafeBufferPointer<cquic_field>, hasBody: Bool) -> Int64 {
        let stream = act { functions.pointee.request($0, fields.baseAddress, fields.count, hasBody ? 1 : 0) } ?? -2
        if stream >= 0 { requestCount += 1 }
        return stream
    }

    func sendBody(_ stream: Int64, _ piece: UnsafeRawBufferPointer, isLast: Bool) -> Bool {
        act { functions.pointee.send_body($0, stream, piece.forQUIC, isLast ? 1 : 0) != 0 } ?? false
    }

    func endBody(_ stream: Int64) -> Bool { act { functions.pointee.end_body($0, stream) != 0 } ?? false }

    func credit(_ stream: Int64, _ count: Int) { act { functions.pointee.credit($0, stream, UInt64(count)) } }

    /// Resets both sides of a stream, of which nothing more is reported but `closed`.
    func cancel(_ stream: Int64, _ code: HTTP3ErrorCode) { act { functions.pointee.cancel($0, stream, code.rawValue, 1) } }

    func cancelSending(_ stream: Int64, _ code: HTTP3ErrorCode) {
        act { functions.pointee.cancel_sending($0, stream, code.rawValue) }
    }

    func prioritize(_ stream: Int64, _ field: StaticString) {
        act { connection in
            field.utf8Start.withMemoryRebound(to: CChar.self, capacity: field.utf8CodeUnitCount) {
                functions.pointee.prioritize(connection, stream, $0)
            }
        }
    }

    func ping() { act { functions.pointee.ping($0, Self.now()) } }

    /// Sets after how much silence to send a PING by itself; nil for never.
    func keepAlive(after nanoseconds: UInt64?) { act { functions.pointee.keep_alive($0, nanoseconds ?? .max) } }

    var roundTrip: Int64 { connection.map { Int64(clamping: functions.pointee.round_trip($0)) } ?? 0 }

    /// After how many nanoseconds of silence either side ends the connection without a word; nil for never.
    var idleTimeout: Int64? {
        connection.flatMap { functions.pointee.idle_timeout($0) }.flatMap { $0 == .max ? nil : Int64(clamping: $0) }
    }

    @discardableResult
    private func act<Result>(_ body: (OpaquePointer) -> Result) -> Result? {
        guard let connection else { return nil }
        scheduleFlush()
        guard !isInLibrary else { return body(connection) }
        isInLibrary = true
        defer {
            isInLibrary = false
            closeIfPending()
        }
        return body(connection)
    }

    func allowed(requests: UInt64) {
        allowedRequests = Int64(clamping: requests)
        owner?.limitsChanged()
    }

    func isGoingAway(firstUnprocessed: Int64) {
        self.firstUnprocessed = firstUnprocessed
        owner?.goingAway(firstUnprocessed: firstUnprocessed)
    }

    func announced(sectionLimit: UInt64, allowsExtendedConnect: Bool) {
        peerSectionLimit = Int(exactly: sectionLimit)
        self.allowsExtendedConnect = allowsExtendedConnect
        owner?.limitsChanged()
    }

    // MARK: The handshake's result

    /// The chain that the server presented, in DER.
    var serverChain: [[UInt8]] {
        list { functions.pointee.certificate($0, $1, &$2) }
    }

    /// The names, in DER, of the issuers whose certificates the server accepts.
    var acceptedIssuers: [[UInt8]] { list { functions.pointee.accepted_issuer($0, $1, &$2) } }

    private func list(_ get: (OpaquePointer, Int, inout cquic_bytes) -> CInt) -> [[UInt8]] {
        guard let connection else { return [] }
        var all: [[UInt8]] = []
        var item = cquic_bytes()
        while all.count < 512, get(connection, all.count, &item) != 0 { all.append([UInt8](item.bytes)) }
        return all
    }

    var tls: cquic_tls {
        var tls = cquic_tls()
        if let connection { functions.pointee.tls(connection, &tls) }
        return tls
    }

    // MARK: Sending

    /// Sends what is to be sent at the end of this turn of the loop.
    func scheduleFlush() {
        guard !isFlushDue, socket != nil else { return }
        isFlushDue = true
        executor.callLater { [self] in if isFlushDue { flush() } }
    }

    private func flush() {
        isFlushDue = false
        for _ in 0..<Self.batchesPerTurn {
            guard let connection, let socket else { return }
            // What waits for the socket goes first.
            guard !socket.isBlocked else { return armTimer() }
            var packets = cquic_packets()
            let isOpen = inLibrary {
                functions.pointee.send(connection, scratch.bytes, DatagramScratch.size, &packets, Self.now())
            }
            guard isOpen else { return }
            guard packets.size > 0 else { return armTimer() }
            socket.send(UnsafeRawBufferPointer(start: scratch.bytes, count: packets.size), packets)
            guard packets.has_more != 0 else { return armTimer() }
        }
        scheduleLaterFlush()
    }

    /// Continues after other connections had their turn.
    private func scheduleLaterFlush() {
        guard !isFlushDue else { return }
        isFlushDue = true
        executor.turns.runInLaterTurn { [self] in if isFlushDue { flush() } }
    }

    /// Lets the library work; returns whether the connection is still open afterwards.
    private func inLibrary(_ work: () -> CInt) -> Bool {
        isInLibrary = true
        let isOpen = work() != 0
        isInLibrary = false
        if !closeIfPending(), !isOpen { end() }
        return connection != nil
    }

    /// Ends the connection if that was wanted while the library was at work.
    @discardableResult
    private func closeIfPending() -> Bool {
        guard let pending = pendingClose.take() else { return false }
        close(isApplication: pending.isApplication, pending.code)
        return true
    }

    // MARK: The timer

    /// Keeps one timer, which is moved only if the library's comes earlier.
    private func armTimer() {
        guard let connection else { return }
        let expiry = functions.pointee.expiry(connection)
        guard expiry != .max else { return }
        if let timer, timer.at <= expiry || timer.at - expiry < Self.precision { return }
        timer?.task.cancel()
        let bound = NIOLoopBound(self, eventLoop: loop)
        let deadline = NIODeadline.uptimeNanoseconds(min(expiry, UInt64(Int64.max)))
        timer = (loop.scheduleTask(deadline: deadline) { bound.value.timerFired() }, expiry)
    }

    private func timerFired() {
        timer = nil
        guard let connection else { return }
        let now = Self.now()
        guard functions.pointee.expiry(connection) <= now else { return armTimer() }
        guard inLibrary({ functions.pointee.expire(connection, now) }) else { return }
        // The timer also fires because nothing was acknowledged (RFC 9002, section 6.2).
        if functions.pointee.bytes_in_flight(connection) > 0 { owner?.isUnanswered() }
        guard isOpen else { return }
        owner?.received()
        flush()
    }

    // MARK: The socket's side

    /// Passes datagrams that arrived together on.
    func receive(_ all: UnsafeRawBufferPointer, segmentSize: Int, ecn: UInt8) {
        var offset = 0
        while offset < all.count {
            let datagram = UnsafeRawBufferPointer(rebasing: all[offset..<min(offset + segmentSize, all.count)])
            let now = NIODeadline.now()
            // The owner may end the connection.
            owner?.willReceive(now: now)
            guard let connection else { return }
            guard inLibrary({ functions.pointee.receive(connection, datagram.forQUIC, ecn, now.uptimeNanoseconds) }) else {
                return
            }
            offset += segmentSize
        }
    }

    func received() {
        owner?.received()
        flush()
    }

    func wasRefused(_ error: any Error) { owner?.wasRefused(error) }

    /// The channel ends at some messages that anyone may send (ICMP); the connection then continues with another socket, if it can.
    func closed(_ socket: QUICSocket) {
        guard self.socket === socket, isOpen else { return }
        self.socket = nil
        reopenCount += 1
        guard reopenCount <= Self.maximumReopenings, reopen != nil else {
            return finish(QUICFailure(CQUIC_FAILURE, "the socket was closed"))
        }
        migrate { [self] hasMoved in
            if !hasMoved { finish(QUICFailure(CQUIC_FAILURE, "the socket was closed")) }
        }
    }

    // MARK: Migration

    /// Continues on a new socket, with another local address (RFC 9000, section 9); `done` is called with false if that is impossible.
    func migrate(_ done: @escaping (Bool) -> Void) {
        guard isOpen, let reopen else { return done(false) }
        reopen { [self] opened in
            guard let connection, let opened, let local = opened.channel?.localAddress else {
                opened?.channel?.close(promise: nil)
                return done(false)
            }
            let moves = local.withSockAddr { functions.pointee.migrate(connection, $0, socklen_t($1), Self.now()) != 0 }
            let former = moves ? socket : opened
            if moves { socket = opened }
            former?.channel?.close(promise: nil)
            flush()
            done(moves)
        }
    }

    // MARK: The end

    /// Ends the connection because the library says that it is over.
    private func end() {
        guard let connection else { return }
        var failure = cquic_failure()
        functions.pointee.failure(connection, &failure)
        let reason = QUICFailure(failure)
        switch reason.end {
        case CQUIC_TLS: sendClose(isApplication: false, 0x100 + reason.code)
        case CQUIC_NO_PROTOCOL, CQUIC_VIOLATION_OF_TRANSPORT: sendClose(isApplication: false, reason.code)
        case CQUIC_VIOLATION_OF_APPLICATION: sendClose(isApplication: true, reason.code)
        default: break
        }
        finish(reason)
    }

    /// Closes the connection; nothing is reported afterwards.
    func close(_ code: HTTP3ErrorCode = .noError) { close(isApplication: true, code.rawValue) }

    /// Ends the handshake because the server is refused (RFC 9001, section 4.8).
    func refuse(alert: UInt8) { close(isApplication: false, 0x100 + UInt64(alert)) }

    private func close(isApplication: Bool, _ code: UInt64) {
        owner = nil
        guard !isInLibrary else {
            pendingClose = (isApplication, code)
            return
        }
        sendClose(isApplication: isApplication, code)
        finish(nil)
    }

    private func sendClose(isApplication: Bool, _ code: UInt64) {
        guard let connection, let socket else { return }
        let count = functions.pointee.close(
            connection, isApplication ? 1 : 0, code, nil, scratch.bytes, DatagramScratch.size, Self.now())
        guard count > 0 else { return }
        let packets = cquic_packets(count: 1, packet_size: count, size: count, ecn: 0, has_more: 0)
        socket.send(UnsafeRawBufferPointer(start: scratch.bytes, count: count), packets)
    }

    private func finish(_ failure: QUICFailure?) {
        guard let connection else { return }
        self.connection = nil
        timer?.task.cancel()
        timer = nil
        functions.pointee.destroy(connection)
        let owner = owner
        self.owner = nil
        reopen = nil
        if let failure { owner?.ended(failure) }
        let socket = socket.take()
        socket?.channel?.close(promise: nil)
    }
}
