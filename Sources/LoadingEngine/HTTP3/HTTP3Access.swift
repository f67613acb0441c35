// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPTransport
import LoadingModel
import NIOCore
import SystemLibraries

/// A session's way to HTTP/3: whether the session can use it, and the libraries, which are opened for the first request that could.
///
/// Confined to the session's loop.
final class HTTP3Access {
    /// How long requests wait for the libraries to be opened, which takes 2 ms if their files were read before.
    ///
    /// Later requests use HTTP/3 once the libraries are open.
    private static let patience = TimeAmount.milliseconds(50)

    private enum State {
        case unopened
        case opening
        /// The libraries are still being opened, and only requests that demand HTTP/3 wait for them.
        case late
        case settled
    }

    let directory: HTTP3Directory
    /// Whether the session demands HTTP/3.
    let isDemanded: Bool
    /// The reason why the session cannot use HTTP/3; nil if it can, or if the libraries are not open yet.
    private(set) var obstacle: HTTP3Obstacle?
    /// Receives the way to servers over QUIC, once the libraries are open.
    var opened: ((QUICAccess) -> Void)?
    private var state: State
    private var waiting: [LoadControl] = []
    private var timer: Scheduled<Void>?
    private let loop: any EventLoop

    init(_ policy: SessionPolicy, loop: any EventLoop, now: @escaping () -> Double) {
        self.loop = loop
        isDemanded = policy.connections?.httpVersions == .http3Only
        obstacle = Self.obstacle(in: policy)
        state = obstacle == nil ? .unopened : .settled
        directory = HTTP3Directory(
            isDemanded: isDemanded, records: ServiceBindingSources.lookups(policy), loop: loop, now: now)
    }

    private static func obstacle(in policy: SessionPolicy) -> HTTP3Obstacle? {
        switch policy.connections?.httpVersions {
        case .http1Only, .withoutHTTP3: return .excluded
        case .negotiated, .http2PriorKnowledge, .http3Only, nil: break
        }
        if policy.connections?.unixSocketPath != nil { return .unixSocket }
        if let maximum = policy.maximumTLSVersion, maximum < 0x0304 { return .tlsMaximum }
        return policy.usesMultipath ? .multipath : nil
    }

    /// Whether a load may ask for a connection of a route now; if not, it is woken when it may.
    ///
    /// Throws if the session demands HTTP/3, and the route cannot use it.
    @inline(__always)
    func admits(_ route: Route, _ hop: Hop, in load: Load) throws(LoadError) -> Bool {
        if case .settled = state, !isDemanded, !hop.request.assumesHTTP3 { return true }
        return try decide(route, hop, in: load)
    }

    @inline(never)
    private func decide(_ route: Route, _ hop: Hop, in load: Load) throws(LoadError) -> Bool {
        if let obstacle = route.obstacleToHTTP3 ?? obstacle { return try admits(despite: obstacle, hop, in: load) }
        if hop.request.assumesHTTP3 { directory.assume(Origin(ServerName(host: route.host, port: route.port))) }
        if case .unopened = state { open() }
        switch state {
        case .unopened, .opening: break
        case .late where isDemanded: break
        case .late: return true
        case .settled:
            if let obstacle { return try admits(despite: obstacle, hop, in: load) }
            return true
        }
        waiting.append(load.control)
        return false
    }

    private func admits(despite obstacle: HTTP3Obstacle, _ hop: Hop, in load: Load) throws(LoadError) -> Bool {
        // A proxy script may be at any URL; it only chooses a route.
        guard isDemanded, !load.order.isForProxies else { return true }
        throw LoadError(
            .cannotConnectToHost, "the session demands HTTP/3, which is not possible: \(obstacle)", url: hop.request.url)
    }

    /// Returns what is known about HTTP/3 for an origin.
    func standing(of origin: Origin) -> HTTP3Standing {
        let library = QUIC.wasOpened ? QUIC.library : nil
        return HTTP3Standing(
            library: library.map { "\($0.name), \($0.path)" }, obstacle: obstacle, choice: directory.choice(of: origin))
    }

    // MARK: Opening

    /// Opens the libraries on another thread, unless another session has opened them.
    private func open() {
        guard !QUIC.wasOpened else { return settle() }
        state = .opening
        let bound = NIOLoopBound(self, eventLoop: loop)
        let isTaken = WorkerThreads.computing.run { [loop] in
            _ = QUIC.library
            loop.execute { bound.value.settle() }
        }
        // Without a thread, the loop opens them: slow is better than never.
        guard isTaken else { return settle() }
        timer = loop.scheduleTask(in: Self.patience) { bound.value.isLate() }
    }

    private func isLate() {
        guard case .opening = state else { return }
        state = .late
        wakeAll()
    }

    private func settle() {
        state = .settled
        timer.take()?.cancel()
        if let library = QUIC.library {
            opened?(QUICAccess(library: QUICLibrary(library.functions), directory: directory))
        } else {
            obstacle = .noLibrary(QUIC.failure ?? "")
        }
        wakeAll()
    }

    private func wakeAll() {
        let controls = waiting
        waiting = []
        for control in controls { control.wake() }
    }
}
