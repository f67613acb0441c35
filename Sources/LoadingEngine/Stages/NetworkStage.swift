// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores
import NIOCore

/// Sends the message on a connection of the pool, and waits for the response head.
final class NetworkStage: LoadStage {
    /// The number of accepted chains that a hop remembers.
    private static let maximumAcceptedChains = 4

    /// The number of decoded bytes that are allowed regardless of the expansion ratio.
    static let decodingFloor: Int64 = 67_108_864

    let pool: ConnectionPool

    init(pool: ConnectionPool) { self.pool = pool }

    /// Sends the message if a connection is available, and returns the response if it has arrived.
    func step(_ hop: Hop, in load: Load) throws(LoadError) -> StageStep {
        if !hop.network.hasBegun { beginTransaction(hop, in: load) }
        guard let answer = try attempt(hop, in: load) else { return load.tunnels.isEmpty ? .waits : .needsTask }
        hop.network.hasBegun = false
        return .answered(answer)
    }

    /// All waiting happens in this method, so that a waiting load keeps one small frame.
    func answer(_ hop: Hop, in load: Load, then next: LowerStages) async throws(LoadError) -> Answer {
        while true {
            if case .answered(let answer) = try step(hop, in: load) { return answer }
            if load.tunnels.isEmpty { await load.control.wait() } else { await load.answerTunnel() }
        }
    }

    // MARK: Attempts

    @inline(never)
    private func beginTransaction(_ hop: Hop, in load: Load) {
        hop.network.hasBegun = true
        // The transaction begins at the time of the load's last progress, which led to this request.
        let transaction = Transaction(request: hop.request, now: load.control.lastProgress)
        load.begin(transaction)
        transaction.observe(hop, in: load)
        load.lastAttempt = AttemptTraffic()
        load.tunnels.forget()
    }

    /// Makes as much progress as possible without waiting.
    ///
    /// Returns nil if the load has to wait.
    @inline(never)
    private func attempt(_ hop: Hop, in load: Load) throws(LoadError) -> Answer? {
        guard let transaction = load.transaction else { return nil }
        do {
            return try isAnswered(hop, transaction, in: load) ? try answer(hop, transaction, in: load) : nil
        } catch {
            // The load has no network, and waits for one if its session allows that. If the load fetches a proxy script, the loads
            // that need the script wait instead.
            if error.kind == .notConnectedToInternet, !load.order.isForProxies, load.session.policy.waitsForConnectivity,
                pool.wait(load.control)
            {
                load.reportWaiting()
                return nil
            }
            hop.network.endSilence()
            hop.network.hasBegun = false
            if let exchange = transaction.exchange {
                load.lastAttempt = AttemptTraffic(
                    // A network that carries the handshake may lose the larger datagrams that follow.
                    connectionWasReused: exchange.isReused || exchange.version == .http3,
                    receivedAnyBytes: exchange.record.hasReceivedBytes,
                    evidence: exchange.evidence)
                exchange.cancel()
            }
            transaction.observeEnd(error)
            throw error
        }
    }

    /// Gets a connection, sends the request and receives the response head, as far as possible without waiting.
    ///
    /// Returns whether the head has arrived.
    @inline(never)
    private func isAnswered(_ hop: Hop, _ transaction: Transaction, in load: Load) throws(LoadError) -> Bool {
        if let exchange = transaction.exchange { return try isAnswered(exchange, hop, in: load) }
        while let connection = try connection(for: hop, in: load) {
            // The load waits for a place again.
            guard connection.allowsExchange else {
                pool.giveBack(connection)
                continue
            }
            if load.wants(.challenges), try mustAskDelegate(about: connection, hop, in: load) { return false }
            // Only one connection is replaced in this way, because a server may close every connection that it accepts.
            guard mayCarry(connection, hop) || hop.network.needsNewConnection else {
                hop.network.needsNewConnection = true
                connection.giveUp()
                pool.giveBack(connection)
                continue
            }
            return try isAnswered(begin(hop, on: connection, transaction, in: load), hop, in: load)
        }
        return false
    }

    /// Returns a connection from the pool, or nil if the load has to wait.
    private func connection(for hop: Hop, in load: Load) throws(LoadError) -> (any HTTPConnection)? {
        if let position = load.control.queuePosition {
            if let lease = position as? ConnectionPool.Lease {
                guard lease.isAnswered, !load.control.isSuspended || load.control.failure != nil else { return nil }
                return try pool.take(lease)
            }
            guard let chain = try (position as? TrustHearing)?.acceptedChain(for: load) else { return nil }
            hop.network.acceptedChains = hop.network.acceptedChains.suffix(Self.maximumAcceptedChains - 1) + [chain.certificates]
        }
        if case .offline(let wait) = load.control.phase, !pool.hasEnded(wait) { return nil }
        try load.control.check()
        // From now on, the handshake of the connection that this load waited for asks another load.
        load.tunnels.forget()
        guard !load.control.isSuspended else { return nil }
        let route = try route(of: hop)
        guard try load.session.http3.admits(route, hop, in: load) else { return nil }
        if !hop.network.needsNewConnection, let idle = pool.takeIdle(route) { return idle }
        let lease = pool.acquire(
            route, priority: load.connectionPriority, control: load.control, adviser: route.mayAskAdviser ? load : nil,
            onlyNew: hop.network.needsNewConnection
        )
        return lease.isAnswered ? try pool.take(lease) : nil
    }

    /// Whether the load has to ask its delegate about the connection first; the connection is then given back.
    private func mustAskDelegate(about connection: any HTTPConnection, _ hop: Hop, in load: Load) throws(LoadError) -> Bool {
        guard let chain = connection.keptChain, !chain.isAccepted(by: load.ownDelegate) else { return false }
        if hop.network.acceptedChains.contains(chain.certificates) {
            chain.accept(load.ownDelegate)
            return false
        }
        // The connection may be the new one that the hop required; the hop takes it, or another, after the answer.
        hop.network.needsNewConnection = false
        pool.giveBack(connection)
        let route = try route(of: hop)
        TrustHearing.begin(about: chain, of: ServerName(host: route.host, port: route.port), for: load)
        return true
    }

    /// Whether the connection may carry the hop's message.
    ///
    /// If the message could not be sent again (``RetryPolicy``), this method checks that the server has not closed the connection,
    /// which may happen without notice.
    private func mayCarry(_ connection: any HTTPConnection, _ hop: Hop) -> Bool {
        RetryPolicy.mayRepeat(method: hop.request.method, bodyIsReplayable: hop.request.body.isReplayable) || !connection.isGone
    }

    private func route(of hop: Hop) throws(LoadError) -> Route {
        guard let route = hop.preparation.message?.route else { throw LoadError(.badURL, "the request has no message") }
        return route
    }

    private func begin(
        _ hop: Hop, on connection: any HTTPConnection, _ transaction: Transaction, in load: Load
    ) throws(LoadError) -> Exchange {
        guard let message = hop.preparation.message else { throw LoadError(.badURL, "the request has no message") }
        if message.outgoing.isExtendedConnect, !connection.allowsExtendedConnect {
            pool.giveBack(connection)
            load.kind?.extendedConnectFailed()
            load.lastAttempt.evidence = .notProcessed(RetryEvidence.Refusal(endsConnection: false))
            throw LoadError(.connectionLost, "the shared connection for the WebSocket was closed")
        }
        do {
            let exchange = try connection.begin(message.outgoing, control: load.control)
            transaction.exchange = exchange
            load.control.enter(.exchanging(exchange))
            if load.wants(.sentHeads) { load.tell(.sentHead(connection.framedHead(of: message.outgoing))) }
            if connection.facts.isForwarded {
                hop.network.silence = ProxySilence(hop.request, message.route, load.proxies, load.control)
            }
            // Values that are still needed are copied; the message is released below, because ten thousand loads may be waiting.
            transaction.sentBodyLength = message.outgoing.body.length ?? 0
            load.kind?.willSend(hop, as: transaction)
            if load.session.stores.cache != nil || load.wants(.cache) || !load.collects {
                transaction.sent = SentFields(message.ownHeaders, credential: RequestAuthentication.credential(of: hop))
            }
            hop.network.askedToContinue = message.outgoing.expectsContinue
            hop.preparation.release()
            hop.network.wasSent = true
            hop.network.needsNewConnection = false
            return exchange
        } catch {
            load.lastAttempt.connectionWasReused = true
            // A shared connection that is ending accepts no more requests; the pool provides another one for the retry.
            if error.kind == .connectionLost { load.lastAttempt.evidence = connection.evidenceBeforeRequest }
            pool.giveBack(connection)
            throw error
        }
    }

    /// Whether the head has arrived; reports events to the client while checking.
    private func isAnswered(_ exchange: Exchange, _ hop: Hop, in load: Load) throws(LoadError) -> Bool {
        if let silence = hop.network.silence { try silence.check(exchange) }
        // Checked again after reporting: an event may be followed by a failure that does not wake the load again.
        while try exchange.hasEvent(), let event = exchange.takeEvent() {
            switch event {
            case .sent(let bytes, let total):
                if load.wants(.sentBytes) { load.tellSent(bytes, total: total) }
            case .informational(let head):
                ResponseSideEffects.keep(head.headers, of: hop, exchange, in: load.session, isForApp: load.wants(.cookies))
                guard let url = hop.request.url else { break }
                if load.wants(.informational) { load.tell(.informational(head, url: url)) }
                try load.kind?.handleInterim(head, from: url, hop, exchange, in: load)
            case .head:
                hop.network.endSilence()
                if let proxies = load.proxies { ProxyChoice.noteResponse(hop, proxies, now: load.control.lastProgress) }
                return true
            }
        }
        return false
    }

    @inline(never)
    private func answer(_ hop: Hop, _ transaction: Transaction, in load: Load) throws(LoadError) -> Answer {
        guard let exchange = transaction.exchange, exchange.hasHead, let url = hop.request.url else {
            throw LoadError(.badServerResponse, "there is no response")
        }
        let head = exchange.receivedHead
        let (response, decoder) = try response(
            url: url, head: head, exchange: exchange, method: hop.request.method,
            maximumDecodingRatio: load.session.policy.maximumDecodingRatio, budget: load.collects ? .shared : nil
        )
        transaction.response = response
        transaction.observeAnswer()
        ResponseSideEffects.keep(head.headers, of: hop, exchange, in: load.session, isForApp: load.wants(.cookies))
        let body = ExchangeBody(exchange, decoder: decoder, transaction: transaction, of: load)
        return Answer(
            response: response, body: ResponseCaching.keep(body, response, head, hop, transaction, in: load) ?? body,
            transaction: transaction
        )
    }

    private func response(
        url: URL, head: ResponseHead, exchange: Exchange, method: String, maximumDecodingRatio: Int64, budget: ExpansionBudget?
    ) throws(LoadError) -> (LoadResponse, ContentDecoder?) {
        var expected: Int64 = -1
        let framing = exchange.framing
        if case .length(let length) = framing { expected = length }
        if case .none = framing { expected = method == "HEAD" ? declaredLength(head) : 0 }
        var decoder: ContentDecoder?
        let sentIn = exchange.transferCompressions
        if framing != .none, !exchange.hasSwitched, head.headers.contains(.contentEncoding) || !sentIn.isEmpty {
            let limit = ContentDecoder.Limit(ratio: maximumDecodingRatio, floor: Self.decodingFloor)
            do {
                decoder = try ContentDecoder(
                    encodings: head.headers.all("Content-Encoding"), transfer: sentIn, libraries: SystemCodings.all, limit: limit,
                    budget: budget)
            } catch {
                throw error.loadError
            }
            if decoder != nil { expected = -1 }
        }
        return (LoadResponse(url: url, kind: .http(head), expectedLength: expected), decoder)
    }

    private func declaredLength(_ head: ResponseHead) -> Int64 {
        head.headers.first(.contentLength).flatMap { Int64($0) } ?? -1
    }
}
