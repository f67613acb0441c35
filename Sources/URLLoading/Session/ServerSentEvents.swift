// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import HTTPRules
internal import HTTPWire
internal import Synchronization

/// A server-sent event (WHATWG HTML, section 9.2).
///
/// Not in Apple's API.
public struct ServerSentEvent: Hashable, Sendable {
    /// The event type; `message` if the server names none.
    public var type: String
    /// The data lines, joined by line feeds.
    public var data: String
    /// The last event ID that the server sent, with this event or an earlier one; empty if the server has sent no ID.
    public var id: String

    init(_ event: EventStreamReader.Event) {
        type = event.type
        data = event.data
        id = event.lastIdentifier
    }
}

extension URLSession {
    /// Returns the server-sent events of a response, as they arrive (WHATWG HTML, section 9.2).
    ///
    /// ```swift
    /// for try await event in session.serverSentEvents(for: request) { print(event.data) }
    /// ```
    ///
    /// Not in Apple's API. `Accept: text/event-stream` and `Cache-Control: no-store` are added unless the request sets these
    /// fields, and the request bypasses the cache. Idle time is not an error: the request timeout applies only until the response
    /// arrives.
    ///
    /// - Parameters:
    ///   - request: Usually a GET. A request with another method, such as a POST to a language model, is sent only once.
    ///   - lastEventID: The ID of the last event that the app has already received (`Last-Event-ID`); default empty, for no ID.
    ///   - maximumEventSize: The maximum size of one event in bytes; default 1 MiB.
    ///   - onResponse: Called with each HTTP response, before its first event, also after a reconnection and for a response that ends
    ///     the sequence; default nil.
    /// - Returns: The sequence; its iterator sends the request.
    public func serverSentEvents(
        for request: URLRequest, lastEventID: String = "", maximumEventSize: Int = 1_048_576,
        onResponse: (@Sendable (HTTPURLResponse) -> Void)? = nil
    ) -> ServerSentEvents {
        ServerSentEvents(
            session: self, request: request, lastEventID: lastEventID, maximumEventSize: max(maximumEventSize, 1),
            onResponse: onResponse)
    }
}

/// The sequence of server-sent events that ``URLSession/serverSentEvents(for:lastEventID:maximumEventSize:onResponse:)`` returns.
///
/// If the response to a GET ends or its connection is lost, the sequence reconnects to the URL that responded, after redirects, and
/// sends `Last-Event-ID`. It first waits for the reconnection time that the server sent (`retry`; default 3 seconds), which doubles
/// with each consecutive failure, up to a minute. If a redirect has led to another origin, fields of the request or the session that
/// are bound to the first origin (`Authorization`, `Cookie`, `Host`) are not sent to the new origin.
///
/// The sequence ends if the server responds with 204. It throws if the first request fails, if a response has a status other than
/// 200 or a type other than `text/event-stream` (`badServerResponse`; `URLError.refusal` has the response), if an event is too long
/// (`dataLengthExceedsMaximum`), or when the session is invalidated (`cancelled`), also between two requests. To stop, leave the
/// loop or cancel the Swift task.
///
/// Each iterator sends its own requests.
public struct ServerSentEvents: AsyncSequence, Sendable {
    /// An event.
    public typealias Element = ServerSentEvent

    let session: URLSession
    let request: URLRequest
    let lastEventID: String
    let maximumEventSize: Int
    let onResponse: (@Sendable (HTTPURLResponse) -> Void)?

    /// A response that is not an event stream and ended the sequence, such as one with the status 401, 429 or 503.
    public struct Refusal: Sendable {
        /// The response.
        public let response: HTTPURLResponse
        /// The beginning of the body: at most 65,536 bytes, and only what arrived within the request timeout.
        public let body: Data
    }

    /// Makes an iterator, which sends the request when its first event is requested.
    ///
    /// - Returns: The iterator.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Returns one event at a time.
    public struct Iterator: AsyncIteratorProtocol {
        /// Seconds between two attempts, if the server has not sent a reconnection time.
        private static let defaultPause = 3.0
        private static let longestPause = 60.0
        /// The request timeout while the body is read, in seconds: a year, because events may be far apart.
        private static let noTimeout = 31_536_000.0
        /// The maximum size of ``Refusal/body``.
        private static let refusalLimit = 65_536

        private let source: ServerSentEvents
        private var request: URLRequest
        private var reader: EventStreamReader
        private var bytes: URLSession.AsyncBytes.Iterator?
        private var hasOpened = false
        /// Whether a redirect has led away from the origin of the app's request.
        private var leftOrigin = false
        private var isOver = false
        private var failures = 0

        init(_ source: ServerSentEvents) {
            self.source = source
            request = source.request
            if request.value(forHTTPHeaderField: "Accept") == nil {
                request.setValue("text/event-stream", forHTTPHeaderField: "Accept")
            }
            if request.value(forHTTPHeaderField: "Cache-Control") == nil {
                request.setValue("no-store", forHTTPHeaderField: "Cache-Control")
            }
            request.cachePolicy = .reloadIgnoringLocalCacheData
            let field = request.value(forHTTPHeaderField: Self.identifierField) ?? ""
            reader = EventStreamReader(
                lastIdentifier: source.lastEventID.isEmpty ? field : source.lastEventID, limit: source.maximumEventSize)
        }

        private static let identifierField = "Last-Event-ID"

        /// The next event, or nil when the server has ended the sequence.
        ///
        /// - Returns: The event, or nil.
        /// - Throws: A `URLError` if the sequence fails; `CancellationError` if the Swift task is cancelled during a pause.
        public nonisolated(nonsending) mutating func next() async throws -> ServerSentEvent? {
            while !isOver {
                if bytes == nil { try await open() }
                // The attempt failed: retry, unless the sequence has ended.
                guard !isOver, var bytes else { continue }
                do {
                    while let byte = try await bytes.next() {
                        guard let event = try reader.take(byte) else { continue }
                        self.bytes = bytes
                        failures = 0
                        return ServerSentEvent(event)
                    }
                    try await handleDisconnect(nil)
                } catch is EventStreamReader.TooLong {
                    try fail(.dataLengthExceedsMaximum, "a server-sent event is longer than \(source.maximumEventSize) bytes")
                } catch let error as URLError where error.code != .cancelled {
                    try await handleDisconnect(error)
                }
            }
            return nil
        }

        /// Handles the end or the failure of a response: waits before a reconnection, or ends the sequence if the request must not be
        /// sent again.
        private nonisolated(nonsending) mutating func handleDisconnect(_ error: URLError?) async throws {
            bytes = nil
            guard hasOpened, (request.httpMethod ?? "GET") == "GET" else {
                isOver = true
                if let error { throw error }
                return
            }
            // The server may ask for an immediate reconnection (`retry: 0`). Doubling zero gives zero, so the pause has a minimum from
            // the second consecutive failure on.
            let basePause = Swift.max(reader.retry.map { Double($0) / 1000 } ?? Self.defaultPause, failures > 0 ? 0.25 : 0)
            let pause = Swift.max(basePause, Swift.min(basePause * Double(1 << Swift.min(failures, 10)), Self.longestPause))
            failures += 1
            // An incomplete event is discarded.
            var fresh = EventStreamReader(lastIdentifier: reader.lastIdentifier, limit: source.maximumEventSize)
            fresh.retry = reader.retry
            reader = fresh
            try await source.session.waitWhileValid(Swift.min(pause, 86_400), for: request.url)
        }

        private nonisolated(nonsending) mutating func open() async throws {
            // The stream resets the identifier by an `id` field without a value.
            let identifier = reader.lastIdentifier
            request.setValue(identifier.isEmpty ? nil : identifier, forHTTPHeaderField: Self.identifierField)
            do {
                let (bytes, response) = try await load()
                guard let response = response as? HTTPURLResponse else {
                    return try fail(.badServerResponse, "the response is not an HTTP response")
                }
                source.onResponse?(response)
                if response.statusCode == 204 {
                    isOver = true
                    return
                }
                guard response.statusCode == 200 else {
                    return try await refuse(
                        response, bytes, "the server responded with status \(response.statusCode) instead of 200")
                }
                guard response.mimeType?.lowercased() == "text/event-stream" else {
                    return try await refuse(
                        response, bytes, "the server sent \(response.mimeType ?? "no type") instead of text/event-stream")
                }
                hasOpened = true
                self.bytes = bytes.makeAsyncIterator()
                followRedirect(to: response.url)
            } catch let error as URLError where hasOpened && !isOver && error.code != .cancelled {
                try await handleDisconnect(error)
            }
        }

        /// Sends the request, with the request timeout until the response arrives and without a timeout for the body.
        private nonisolated(nonsending) func load() async throws -> (URLSession.AsyncBytes, URLResponse) {
            var openEndedRequest = request
            openEndedRequest.timeoutInterval = Self.noTimeout
            let timeoutFlag = TimeoutFlag()
            do {
                return try await withinTimeout(timeoutFlag) { [openEndedRequest, leftOrigin, session = source.session] in
                    try await session.bytes(for: openEndedRequest, delegate: nil, leftOrigin: leftOrigin)
                }
            } catch let error as URLError where error.code == .cancelled && timeoutFlag.hasExpired.load(ordering: .relaxed) {
                throw failure(.timedOut, "the server did not respond within \(timeout) seconds")
            }
        }

        /// The request timeout in seconds.
        private var timeout: Double {
            request.timeoutInterval > 0 ? Swift.min(request.timeoutInterval, Self.noTimeout) : Self.noTimeout
        }

        /// Does work in a Swift task, which is cancelled when the request timeout expires.
        private nonisolated(nonsending) func withinTimeout<Value: Sendable>(
            _ flag: TimeoutFlag, _ work: @escaping @Sendable () async throws -> Value
        ) async throws -> Value {
            let working = Task { try await work() }
            let timer = Task { [timeout, session = source.session] in
                try await session.wait(timeout, isTimeout: true)
                flag.hasExpired.store(true, ordering: .relaxed)
                working.cancel()
            }
            defer { timer.cancel() }
            return try await withTaskCancellationHandler {
                try await working.value
            } onCancel: {
                working.cancel()
            }
        }

        /// Makes later reconnections use the URL of the response, which may come from a redirect.
        private mutating func followRedirect(to url: URL?) {
            guard let url, let before = request.url, url != before else { return }
            if Origin(url) != Origin(before) {
                leftOrigin = true
                for name in (request.allHTTPHeaderFields ?? [:]).keys where RedirectPolicy.isBoundToOrigin(name) {
                    request.setValue(nil, forHTTPHeaderField: name)
                }
            }
            request.url = url
        }

        /// Ends the sequence with an error that has the response and the beginning of its body.
        private nonisolated(nonsending) mutating func refuse(
            _ response: HTTPURLResponse, _ bytes: URLSession.AsyncBytes, _ message: String
        ) async throws {
            isOver = true
            let body = try await withinTimeout(TimeoutFlag()) {
                var body = Data()
                // A body that is cut off or late is returned as far as it has arrived.
                do { for try await byte in bytes.prefix(Self.refusalLimit) { body.append(byte) } } catch {}
                return body
            }
            throw failure(
                .badServerResponse, message, [URLError.refusalKey: ServerSentEvents.Refusal(response: response, body: body)])
        }

        private mutating func fail(_ code: URLError.Code, _ message: String) throws {
            isOver = true
            bytes = nil
            throw failure(code, message)
        }

        private func failure(_ code: URLError.Code, _ message: String, _ others: [String: Any] = [:]) -> URLError {
            let userInfo = [NSLocalizedDescriptionKey: message, NSURLErrorFailingURLErrorKey: request.url as Any]
            return URLError(code, userInfo: userInfo.merging(others) { $1 })
        }
    }
}

extension URLError {
    fileprivate static let refusalKey = "URLLoadingServerSentEventsRefusal"

    /// The response that ended a sequence of server-sent events, or nil if the error has another cause.
    ///
    /// Not in Apple's API. It has what the server says about the refusal, such as `Retry-After`, a request ID, or an error as JSON.
    public var refusal: ServerSentEvents.Refusal? { userInfo[Self.refusalKey] as? ServerSentEvents.Refusal }
}

/// A flag that is set when the request timeout expires before the response arrives.
private final class TimeoutFlag: Sendable {
    let hasExpired = Atomic(false)
}
