// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores
import NIOCore

/// A running request and its response.
///
/// Becomes a ``TransactionTimeline`` when the task is over.
final class Transaction {
    let request: LoadRequest
    let fetchStart: NIODeadline
    var source = TransactionTimeline.Source.network
    var response: LoadResponse?
    var exchange: Exchange?
    /// The header fields that were sent, if a cache or resume data may need them.
    // Unchecked, because it is only set as a whole.
    @exclusivity(unchecked) var sent: SentFields?
    /// The length of the request's body, or -1 if the length was not known when the request was sent.
    var sentBodyLength: Int64 = 0
    /// The number of bytes of an upload's body that earlier requests have sent.
    var sentOffset: Int64 = 0
    /// The end of the transaction; set for loads without an exchange (`file:`, `data:`, the app's own protocols).
    var end: NIODeadline?
    /// The connection of a stream, or to an FTP server: such loads have no exchange.
    var connection: ConnectionFacts?
    var connectionIsReused = false
    /// When the transfer was requested from an FTP server, and when it began.
    var asked: NIODeadline?
    var began: NIODeadline?
    /// The number of body bytes that were sent without an exchange.
    var sentBytes: Int64 = 0
    var bodyBytes: Int64 = 0
    var bodyBytesAfterDecoding: Int64 = 0
    #if Logging || Metrics || Tracing
    /// The observer of the request; nil when the request is over.
    var observer: (any RequestObserver)?
    #endif

    init(request: LoadRequest, now: NIODeadline) {
        self.request = request
        fetchStart = now
    }

    /// The number of body bytes that were sent.
    var sentBodyBytes: Int64 { exchange?.sentBodyBytes ?? sentBytes }
    /// The facts of the connection to the server.
    var facts: ConnectionFacts? { exchange?.facts ?? connection }
    /// The origin that the request is sent to.
    var origin: Origin? {
        guard let url = request.url else { return nil }
        return Origin(url) ?? (try? FTPTarget(url))?.origin
    }

    /// The request with the fields as they were sent.
    var sentRequest: LoadRequest {
        var request = request
        request.sentFields = sent?.plain
        return request
    }

    var timeline: TransactionTimeline {
        var timeline = TransactionTimeline(request: request)
        timeline.response = response
        timeline.source = source
        timeline.fetchStart = WallClock.seconds(fetchStart)
        timeline.responseEnd = end.map(WallClock.seconds)
        timeline.responseBodyBytes = bodyBytes
        timeline.responseBodyBytesAfterDecoding = bodyBytesAfterDecoding
        guard let exchange else {
            timeline.isReusedConnection = connectionIsReused
            if let connection { timeline.note(connection) }
            timeline.requestBodyBytes = sentBytes
            timeline.requestBodyBytesBeforeEncoding = sentBytes
            timeline.requestStart = asked.map(WallClock.seconds)
            timeline.requestEnd = began.map(WallClock.seconds)
            timeline.responseStart = began.map(WallClock.seconds) ?? (end == nil ? nil : timeline.fetchStart)
            return timeline
        }
        timeline.networkProtocol = exchange.version.name
        timeline.isReusedConnection = exchange.isReused
        timeline.note(exchange.facts)
        timeline.requestStart = WallClock.seconds(exchange.record.requestStart)
        timeline.requestEnd = exchange.record.requestEnd.map(WallClock.seconds)
        timeline.responseStart = exchange.record.responseStart.map(WallClock.seconds)
        timeline.responseEnd = exchange.record.responseEnd.map(WallClock.seconds)
        timeline.requestHeaderBytes = Int64(exchange.record.requestHeaderBytes)
        timeline.requestBodyBytes = exchange.record.requestBodyBytes
        timeline.requestBodyBytesBeforeEncoding = exchange.record.requestBodyBytes
        timeline.responseHeaderBytes = exchange.record.responseHeaderBytes
        timeline.responseBodyBytes = exchange.record.responseBodyBytes
        return timeline
    }
}

extension TransactionTimeline {
    /// Sets the connection's facts; also sets its timing, unless the connection was made for an earlier transaction.
    fileprivate mutating func note(_ facts: ConnectionFacts) {
        connection = facts
        isProxyConnection = facts.isToProxy
        guard !isReusedConnection else { return }
        domainLookupStart = facts.domainLookupStart
        domainLookupEnd = facts.domainLookupEnd
        connectStart = facts.connectStart
        secureConnectionStart = facts.secureConnectionStart
        secureConnectionEnd = facts.secureConnectionEnd
        connectEnd = facts.connectEnd
    }
}
