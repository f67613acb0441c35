// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore

/// Makes connections that carry bytes without HTTP.
struct StreamConnecting {
    /// How the pool treats the connection once it is established.
    enum Use {
        /// The pool no longer manages the connection.
        case own
        /// The connection counts as one of its host's connections, and the load may return it.
        case counted
    }

    /// The target in the form in which proxies and proxy scripts receive the target of a tunnel.
    let target: RequestTarget
    let url: URL
    let pool: ConnectionPool
    /// The addresses to use instead of a host name lookup; empty for a lookup.
    var addresses: [String] = []
    /// Set if the connection leads to exactly this host and the target's port, whatever the session's configuration substitutes.
    var exactHost: String?
    var use = Use.own
    /// Whether a connection that was made for another load is never used.
    var onlyNew = false
    /// The owner of connections that stream tasks must not get.
    var holder: ConnectionHolder?
    var needs: ConnectionNeeds?

    /// Connects to the target, through one of the session's proxies if the session has any.
    ///
    /// The load then owns the connection.
    func connect(in load: Load) async throws(LoadError) -> ByteStreamConnection {
        let session = load.session
        if !session.storesAreReady { try await LoopSlot.run(in: load.control, by: session.stores.prepare) {} }
        let hop = Hop(number: 0, request: LoadRequest(url: url))
        while true {
            try await load.control.waitWhileSuspended()
            do throws(LoadError) {
                if let proxies = load.proxies, ProxyChoice.mustWait(hop, to: target, by: proxies) {
                    try await ProxyChoice.prepare(hop, to: target, by: proxies, pool, in: load)
                }
                return try await connection(on: try route(hop, in: load), in: load)
            } catch {
                try load.control.check()
                if error.isProxyError, let proxies = load.proxies, ProxyChoice.switchToNextWay(hop, after: error, proxies) {
                    continue
                }
                guard error.kind == .notConnectedToInternet, session.policy.waitsForConnectivity, pool.wait(load.control) else {
                    throw error
                }
            }
            load.reportWaiting()
            while case .offline(let wait) = load.control.phase, !pool.hasEnded(wait) { await load.control.wait() }
            try load.control.check()
        }
    }

    private func route(_ hop: Hop, in load: Load) throws(LoadError) -> Route {
        let proxy = try ProxyChoice.server(for: target, hop, load.proxies)
        var route = Route(isSecure: false, host: exactHost ?? target.origin.host, port: target.origin.port)
        route.details = RouteDetails(
            proxy: proxy, holder: holder, needs: needs, versions: .http1, hasAlternatives: hop.proxies.hasAlternatives,
            carriesByteStream: true,
            addresses: addresses, isExact: exactHost != nil)
        return route
    }

    private func connection(on route: Route, in load: Load) async throws(LoadError) -> ByteStreamConnection {
        while true {
            if let lease = (load.control.queuePosition as? QueuedLease)?.lease {
                if lease.isAnswered, !load.control.isSuspended || load.control.failure != nil {
                    return try take(try pool.take(lease))
                }
            } else {
                try load.control.check()
                load.tunnels.forget()
                // A suspended task does not queue for a connection.
                if !load.control.isSuspended {
                    if !onlyNew, let idle = idle(route) { return try take(idle) }
                    let lease = pool.acquire(
                        route, priority: load.connectionPriority, control: load.control,
                        adviser: route.mayAskAdviser ? load : nil, onlyNew: onlyNew)
                    load.control.enter(.queued(QueuedLease(lease)))
                    continue
                }
            }
            if load.tunnels.isEmpty { await load.control.wait() } else { await load.answerTunnel() }
        }
    }

    /// A position in the queue that a suspended task keeps, because no other load can use the connection that is being made for
    /// the task.
    private final class QueuedLease: QueuePosition {
        let lease: ConnectionPool.Lease

        init(_ lease: ConnectionPool.Lease) { self.lease = lease }

        func appIsAsked(_ isAsked: Bool) { lease.appIsAsked(isAsked) }
        func priorityChanged(_ priority: Float) { lease.priorityChanged(priority) }
        func suspended() {}
        func resumed() {}
    }

    /// Returns an idle connection that the server has not closed; it was made for a task that was then suspended or canceled.
    private func idle(_ route: Route) -> (any HTTPConnection)? {
        while let idle = pool.takeIdle(route) {
            if !idle.isGone { return idle }
            idle.close()
            pool.giveBack(idle)
        }
        return nil
    }

    private func take(_ connection: any HTTPConnection) throws(LoadError) -> ByteStreamConnection {
        guard let stream = connection as? ByteStreamConnection else {
            pool.giveBack(connection)
            throw LoadError(.cannotConnectToHost, "the connection to \(target.origin.host) is not a byte stream")
        }
        if use != .counted { pool.wasTakenOver(stream) }
        return stream
    }
}

extension StreamOrder {
    /// Returns the stream's target in the form in which proxies and proxy scripts receive the target of a tunnel.
    func target() throws(LoadError) -> (RequestTarget, URL) {
        let name = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
        let text = "https://\(name):\(port)/"
        do {
            let target = try RequestTarget(text: text)
            guard target.user == nil, let url = URL(string: text) else { throw RequestTarget.Malformed.badHost }
            return (target, url)
        } catch {
            let reason = (error as? RequestTarget.Malformed)?.message ?? "it names no server"
            throw LoadError(.badURL, "a stream task cannot connect to \(host), port \(port): \(reason)")
        }
    }
}
