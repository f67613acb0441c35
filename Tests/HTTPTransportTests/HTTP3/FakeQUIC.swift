// SPDX-License-Identifier: Apache-2.0

import CQUIC

@testable import HTTPTransport

/// The other side of a ``QUICConnection`` instead of the libraries: reports what a test wants, and notes what it is asked.
///
/// What the owner must not do by the interface (`CQUIC.h`) is noted as a fault.
///
/// Confined to the thread of its loop.
final class FakeQUIC {
    enum Event {
        case handshakeCompleted
        case requestsAllowed(UInt64)
        case settings(sectionSize: UInt64, allowsExtendedConnect: Bool)
        case sectionBegan(Int64, isTrailers: Bool = false)
        case field(Int64, String, String)
        case sectionEnded(Int64, endsStream: Bool = false)
        case content(Int64, Int)
        case responseEnded(Int64)
        case bodySent(Int64)
        case stopped(Int64, UInt64 = .max)
        case reset(Int64, UInt64)
        case closed(Int64, UInt64 = 0x100)
        case goingAway(Int64)
        case over(cquic_end, code: UInt64 = 0, stream: Int64 = -1, text: String = "")

        /// The stream that the event concerns.
        var stream: Int64? {
            switch self {
            case .sectionBegan(let id, _), .field(let id, _, _), .sectionEnded(let id, _), .content(let id, _),
                .responseEnded(let id),
                .bodySent(let id), .stopped(let id, _), .reset(let id, _), .closed(let id, _):
                id
            case .handshakeCompleted, .requestsAllowed, .settings, .goingAway, .over: nil
            }
        }
    }

    enum Call: Equatable {
        case request(Int64)
        case body(Int64, Int, isLast: Bool)
        case credit(Int64, UInt64)
        case cancel(Int64, UInt64)
        case cancelSending(Int64, UInt64)
        case prioritize(Int64, String)
        case ping
        case keepAlive(UInt64)
        case migrate
        case close(isApplication: Bool, code: UInt64)
        case destroy
    }

    /// A request's stream, as the libraries would know it.
    struct Stream {
        var hasBody: Bool
        /// Whether the body's end was passed.
        var hasEnd: Bool
        /// Whether a piece was passed whose sending was not reported.
        var owesSent = false
        var isSilent = false
        var isOver = false
        var hasResponse = false
        /// The number of the content's bytes.
        var content = 0
    }

    private let table: cquic_events
    private let context: UnsafeMutableRawPointer?
    /// Whether events about streams that are over, or were cancelled, are left out, as the libraries leave them out.
    var isStrict = true
    private(set) var calls: [Call] = []
    private(set) var faults: [String] = []
    private(set) var streams: [Int64: Stream] = [:]
    private(set) var destroyCount = 0
    private(set) var goesAway = false
    private(set) var failure = cquic_failure()
    private var depth = 0
    private var isClosed = false
    /// The number of requests that the server allows in all; requests beyond it are refused.
    var allowed: UInt64 = 0
    /// What the next datagram, the next timer, and what is sent next bring about.
    var arriving: [Event] = []
    var expiring: [Event] = []
    var sending: [Event] = []
    var expiry = UInt64.max
    /// How often `send` will say that there is more to send.
    var batches = 0
    var refusesRequests = false
    var migrates = true

    init(_ settings: cquic_settings) {
        table = settings.events.pointee
        context = settings.context
    }

    var isOver: Bool { failure.end != CQUIC_OPEN }

    func takeCalls() -> [Call] {
        defer { calls = [] }
        return calls
    }

    // MARK: The library's functions

    /// Notes a call; only some are allowed within a report, and none after the end.
    func note(_ call: Call?, _ name: StaticString = #function, mayBeWithin: Bool) {
        if destroyCount > 0 { faults.append("\(name) after destroy") }
        if isClosed, call != .destroy { faults.append("\(name) after close") }
        if depth > 0, !mayBeWithin { faults.append("\(name) within a report") }
        if let call { calls.append(call) }
    }

    /// Returns a number that may be asked for at any time before the end.
    func number(_ value: UInt64, _ name: StaticString = #function) -> UInt64 {
        note(nil, name, mayBeWithin: true)
        return value
    }

    /// Lets the library report events; returns whether the connection is still open.
    func work(_ events: [Event], _ name: StaticString = #function) -> CInt {
        note(nil, name, mayBeWithin: false)
        depth += 1
        for event in events where !isOver && mayTell(event) { tell(event) }
        depth -= 1
        return isOver ? 0 : 1
    }

    func request(hasBody: Bool) -> Int64 {
        note(nil, mayBeWithin: false)
        if goesAway { faults.append("a request after GOAWAY") }
        guard !isOver, !goesAway, !refusesRequests else { return -2 }
        guard UInt64(streams.count) < allowed else { return -1 }
        let id = Int64(streams.count) * 4
        streams[id] = Stream(hasBody: hasBody, hasEnd: !hasBody)
        calls.append(.request(id))
        return id
    }

    func body(_ id: Int64, _ count: Int, isLast: Bool) -> CInt {
        note(.body(id, count, isLast: isLast), mayBeWithin: true)
        guard !isOver, let stream = streams[id], !stream.hasEnd, !stream.isOver, !stream.isSilent else { return 0 }
        if stream.owesSent { faults.append("a piece before the last one was sent") }
        streams[id]?.owesSent = count > 0 || isLast
        streams[id]?.hasEnd = isLast
        return 1
    }

    func cancel(_ id: Int64, _ code: UInt64, isSilent: Bool) {
        note(.cancel(id, code), mayBeWithin: true)
        if isSilent { streams[id]?.isSilent = true }
        streams[id]?.owesSent = false
        streams[id]?.hasEnd = true
    }

    func cancelSending(_ id: Int64, _ code: UInt64) {
        note(.cancelSending(id, code), mayBeWithin: true)
        streams[id]?.owesSent = false
        streams[id]?.hasEnd = true
    }

    func close(isApplication: Bool, code: UInt64) {
        note(.close(isApplication: isApplication, code: code), mayBeWithin: false)
        isClosed = true
    }

    func destroy() {
        note(.destroy, mayBeWithin: false)
        destroyCount += 1
    }

    // MARK: Reports

    private func mayTell(_ event: Event) -> Bool {
        guard isStrict, let id = event.stream else { return true }
        guard let stream = streams[id], !stream.isOver, !stream.isSilent else { return false }
        switch event {
        case .sectionBegan, .field, .sectionEnded, .content, .responseEnded: return !stream.hasResponse
        case .bodySent: return stream.owesSent
        case .stopped: return !stream.hasEnd || stream.owesSent
        default: return true
        }
    }

    private func tell(_ event: Event) {
        switch event {
        case .handshakeCompleted: table.handshake_completed(context)
        case .requestsAllowed(let count):
            allowed = max(allowed, count)
            table.requests_allowed(context, allowed)
        case .settings(let size, let allows): table.settings(context, size, allows ? 1 : 0)
        case .sectionBegan(let id, let isTrailers): table.section_began(context, id, isTrailers ? 1 : 0)
        case .field(let id, let name, let value):
            Self.withBytes(of: name) { name in Self.withBytes(of: value) { table.field(context, id, name, $0) } }
        case .sectionEnded(let id, let ends): table.section_ended(context, id, ends ? 1 : 0)
        case .content(let id, let count): tellContent(id, count)
        case .responseEnded(let id):
            streams[id]?.hasResponse = true
            table.response_ended(context, id)
        case .bodySent(let id):
            streams[id]?.owesSent = false
            table.body_sent(context, id)
        case .stopped(let id, let code):
            streams[id]?.owesSent = false
            streams[id]?.hasEnd = true
            table.stopped(context, id, code)
        case .reset(let id, let code):
            streams[id]?.hasResponse = true
            table.reset(context, id, code)
        case .closed(let id, let code):
            streams[id]?.isOver = true
            table.closed(context, id, code)
        case .goingAway(let first):
            goesAway = true
            table.going_away(context, first)
        case .over(let end, let code, let stream, let text):
            failure.end = end
            failure.code = code
            failure.stream = stream
            withUnsafeMutableBytes(of: &failure.text) { $0.copyBytes(from: text.utf8.prefix($0.count - 1)) }
        }
    }

    /// The bytes of content, which follow from the stream and the place; at most 2 MiB at once.
    static func content(_ id: Int64, at offset: Int, count: Int) -> ArraySlice<UInt8> {
        let start = (offset &+ Int(id)) & 0xFF
        return pattern[start..<start + count]
    }

    private static let pattern = (0..<2_097_152 + 256).map { UInt8(truncatingIfNeeded: $0 &* 7) }

    private func tellContent(_ id: Int64, _ count: Int) {
        let start = streams[id]?.content ?? 0
        streams[id]?.content = start + count
        Self.content(id, at: start, count: count).withUnsafeBufferPointer {
            table.content(context, id, cquic_bytes(start: $0.baseAddress, count: count))
        }
    }

    private static func withBytes(of text: String, _ body: (cquic_bytes) -> Void) {
        let bytes = Array(text.utf8)
        bytes.withUnsafeBufferPointer { body(cquic_bytes(start: $0.baseAddress, count: $0.count)) }
    }
}
