// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores
import NIOCore

/// Creates responses from stored ones.
enum StoredAnswer {
    /// Returns the response to a hop.
    ///
    /// The response's transaction uses no network.
    @inline(never)
    static func make(_ hit: ResponseCache.Hit, wasValidated: Bool, _ hop: Hop, in load: Load) throws(LoadError) -> Answer {
        guard let url = hop.request.url else { throw LoadError(.badURL, "the request has no URL") }
        let now = load.now
        let transaction = Transaction(request: hop.request, now: load.control.lastProgress)
        transaction.source = .localCache
        let stored = hit.response
        var range = 0..<stored.bodyLength
        var status = stored.status
        var headers = stored.headersForReuse(now: now, wasValidated: wasValidated)
        if hop.request.method == "GET", let requested = hop.preparation.message?.head.headers ?? rangeHeaders(hop),
            requested.contains("Range"),
            let served = PartialContent.range(requestHeaders: requested, stored: stored, now: now)
        {
            status = served.status
            headers = served.headers
            if case .partial(let body, _) = served { range = body } else { range = 0..<0 }
        }
        let isHead = hop.request.method == "HEAD"
        let length = isHead ? stored.bodyLength : Int64(range.count)
        let response = LoadResponse(
            url: url, kind: kind(status: status, stored.reason, headers), expectedLength: stored.isCoded ? -1 : length
        )
        transaction.response = response
        load.begin(transaction)
        hop.preparation.release()
        let body = StoredBody(hit.body, range: isHead ? 0..<0 : range, transaction: transaction, control: load.control)
        return Answer(response: response, body: body, transaction: transaction)
    }

    /// Returns the response to an `only-if-cached` request without a usable stored response.
    ///
    /// RFC 9111, section 5.2.1.7: "respond with a 504 (Gateway Timeout) status code".
    @inline(never)
    static func gatewayTimeout(_ hop: Hop, in load: Load) throws(LoadError) -> Answer {
        guard let url = hop.request.url else { throw LoadError(.badURL, "the request has no URL") }
        let transaction = Transaction(request: hop.request, now: load.control.lastProgress)
        transaction.source = .localCache
        var headers = HeaderBlock()
        headers.append("Date", HTTPDate.format(load.now + 978_307_200))
        headers.append("Content-Length", "0")
        let head = ResponseHead(status: 504, reason: "Gateway Timeout", headers: headers)
        let response = LoadResponse(url: url, kind: .http(head), expectedLength: 0)
        transaction.response = response
        load.begin(transaction)
        hop.preparation.release()
        let body = StoredBody(.bytes(Data()), range: 0..<0, transaction: transaction, control: load.control)
        return Answer(response: response, body: body, transaction: transaction)
    }

    /// Returns the request's own fields if they contain `Range`; used when the message was already released.
    private static func rangeHeaders(_ hop: Hop) -> HeaderBlock? {
        hop.request.headers.contains(.range) ? hop.request.headers : nil
    }

    /// Returns the kind of the response; a status of 0 marks a response from the app that is not an HTTP response.
    private static func kind(status: Int, _ reason: String, _ headers: HeaderBlock) -> LoadResponse.Kind {
        guard status == 0 else {
            return .http(ResponseHead(status: status, reason: status == 206 ? "" : reason, headers: headers))
        }
        return .local(mimeType: headers.first(.contentType), textEncoding: nil)
    }

    // MARK: The app's cache

    /// Converts a response from the app's cache.
    ///
    /// If the app created the entry, the request that obtained the response is unknown. That request is assumed to have carried no
    /// credential and no cookies, and otherwise the same fields as this request.
    static func hit(_ cached: CachedResponse, _ hop: Hop, _ fields: HeaderBlock, now: Double) -> ResponseCache.Hit? {
        guard let url = hop.request.url, let head = cached.response.head else { return nil }
        let sentFields: HeaderBlock
        if let known = cached.sentFields {
            sentFields = known
        } else {
            var unknown = fields
            for name in ["Authorization", "Cookie"] { unknown.remove(name) }
            sentFields = unknown
        }
        // The arrival time is unknown; `Date` determines the age.
        let stored = StoredResponse(
            url: CacheKey.text(of: url), requestHeaders: sentFields,
            status: head.status,
            reason: head.reason, headers: head.headers, requestTime: now, responseTime: now, bodyLength: Int64(cached.data.count),
            security: cached.security as? ConnectionSecurity
        )
        return ResponseCache.Hit(
            response: stored, body: .bytes(cached.data), attachment: cached.attachment, userInfo: cached.userInfo,
            mayGoToDisk: cached.storagePolicy == .allowed, storedAt: stored.responseTime
        )
    }

    /// Converts a stored response for the app's cache; nil if the body is not in memory.
    static func cachedResponse(_ hit: ResponseCache.Hit, _ hop: Hop, _ sentFields: HeaderBlock?) -> CachedResponse? {
        guard case .bytes(let data) = hit.body, let url = hop.request.url else { return nil }
        let stored = hit.response
        return CachedResponse(
            response: LoadResponse(
                url: url, kind: kind(status: stored.status, stored.reason, stored.headers), expectedLength: Int64(data.count)
            ),
            data: data, userInfo: hit.userInfo, attachment: hit.attachment,
            storagePolicy: hit.mayGoToDisk ? .allowed : .allowedInMemoryOnly, sentFields: sentFields, security: stored.security
        )
    }
}

extension Transaction {
    /// Returns when the request was sent and when its response arrived, in seconds since the reference date.
    func times(in session: SessionFacts) -> (request: Double, response: Double) {
        let request = exchange?.record.requestStart ?? fetchStart
        return (session.seconds(request), session.seconds(exchange?.record.responseStart ?? request))
    }
}

/// The body of a stored response, or a part of it.
final class StoredBody: ResponseBody {
    private static let pieceSize = 262_144

    private let body: ResponseCache.Body
    private var rest: Range<Int64>
    private let transaction: Transaction
    private let control: LoadControl

    init(_ body: ResponseCache.Body, range: Range<Int64>, transaction: Transaction, control: LoadControl) {
        self.body = body
        rest = range
        self.transaction = transaction
        self.control = control
    }

    func takeWhole() -> Data? {
        guard case .bytes(let data) = body, !control.isSuspended else { return nil }
        return take(data, rest)
    }

    func next() async throws(LoadError) -> ByteBuffer? {
        try await control.waitWhileSuspended()
        guard !rest.isEmpty else {
            transaction.end = transaction.end ?? .now()
            return nil
        }
        switch body {
        case .bytes(let data): return ByteBuffer(bytes: take(data, rest))
        case .file(let file):
            let piece = try await read(file)
            guard !piece.isEmpty else { throw damaged }
            control.markProgress(.now())
            return ByteBuffer(bytes: take(piece, 0..<Int64(piece.count)))
        }
    }

    func cancel() { transaction.end = transaction.end ?? .now() }

    /// Counts a piece of the body as delivered.
    private func take(_ data: Data, _ range: Range<Int64>) -> Data {
        let range = range.clamped(to: 0..<Int64(data.count))
        rest = min(rest.lowerBound + Int64(range.count), rest.upperBound)..<rest.upperBound
        transaction.bodyBytesAfterDecoding += Int64(range.count)
        if rest.isEmpty { transaction.end = transaction.end ?? .now() }
        guard range.count < data.count else { return data }
        return data.dropFirst(Int(range.lowerBound)).prefix(range.count)
    }

    private func read(_ file: CacheBodyFile) async throws(LoadError) -> Data {
        let slot = LoopSlot<Result<Data, CacheBodyFile.Damaged>>(control)
        file.read(at: rest.lowerBound, count: Int(min(Int64(Self.pieceSize), Int64(rest.count)))) { slot.fill($0) }
        guard case .success(let piece) = try await slot.wait() else { throw damaged }
        return piece
    }

    private var damaged: LoadError {
        LoadError(
            .cannotLoadFromNetwork, "the stored response was damaged, and is removed from the cache",
            url: transaction.request.url)
    }
}
