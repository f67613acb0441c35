//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import HTTPTransport
import LoadingModel
import NIOCore

/// One request and its response while it happens; becomes a ``TransactionTimeline`` when the task is over.
final class Transaction {
    let request: LoadRequest
    let fetchStart: NIODeadline
    @exclusivity(unchecked) var source = TransactionTimeline.Source.network
    @exclusivity(unchecked) var response: LoadResponse?
    @exclusivity(unchecked) var exchange: Exchange?
    /// The length of the body that was sent, or -1 where it was not known.
    @exclusivity(unchecked) var sentBodyLength: Int64 = 0
    /// For loads without an exchange (`file:`, `data:`, the app's own protocols).
    @exclusivity(unchecked) var end: NIODeadline?
    @exclusivity(unchecked) var bodyBytes: Int64 = 0
    @exclusivity(unchecked) var bodyBytesAfterDecoding: Int64 = 0

    init(request: LoadRequest, now: NIODeadline) {
        self.request = request
        fetchStart = now
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
            if end != nil { timeline.responseStart = timeline.fetchStart }
            return timeline
        }
        let facts = exchange.facts
        timeline.connection = facts
        timeline.networkProtocol = "http/1.1"
        timeline.isReusedConnection = exchange.isReused
        timeline.isProxyConnection = facts.isToProxy
        if !exchange.isReused {
            timeline.domainLookupStart = facts.domainLookupStart
            timeline.domainLookupEnd = facts.domainLookupEnd
            timeline.connectStart = facts.connectStart
            timeline.secureConnectionStart = facts.secureConnectionStart
            timeline.secureConnectionEnd = facts.secureConnectionEnd
            timeline.connectEnd = facts.connectEnd
        }
        timeline.requestStart = WallClock.seconds(exchange.requestStart)
        timeline.requestEnd = exchange.requestEnd.map(WallClock.seconds)
        timeline.responseStart = exchange.responseStart.map(WallClock.seconds)
        timeline.responseEnd = exchange.responseEnd.map(WallClock.seconds)
        timeline.requestHeaderBytes = Int64(exchange.requestHeaderBytes)
        timeline.requestBodyBytes = exchange.requestBodyBytes
        timeline.requestBodyBytesBeforeEncoding = exchange.requestBodyBytes
        timeline.responseHeaderBytes = exchange.responseHeaderBytes
        timeline.responseBodyBytes = exchange.responseBodyBytes
        return timeline
    }
}
