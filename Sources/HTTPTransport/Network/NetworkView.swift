// SPDX-License-Identifier: Apache-2.0

package import LoadingModel
package import NIOCore

/// One session's view of the machine's networks.
///
/// The view starts to watch the networks when a connection leaves the machine, or a load restricts its networks; after that it does
/// no work while nothing changes. Not `Sendable`: it is confined to its loop.
package final class NetworkView {
    /// How long a dial waits for the monitor's first report.
    private static let patience = TimeAmount.seconds(1)

    private let loop: any EventLoop
    private let monitor: any NetworkMonitoring
    private var stop: (@Sendable () -> Void)?
    private var isOver = false
    private var path: NetworkPath?
    /// Dials that are waiting for the first path; they continue at the latest when `patience` has passed.
    private var waitingDials: [() -> Void] = []
    private var patience: Scheduled<Void>?
    /// Whether the monitor did not report in time; later dials do not wait for it.
    private var hasTimedOut = false
    /// Loads that are waiting for a network, in FIFO order.
    private var waitingLoads: [ObjectIdentifier: (number: Int, load: Wait)] = [:]
    private var nextNumber = 0
    /// The timer that checks whether loads can continue, in case a change was missed.
    private var retry: Scheduled<Void>?
    private var retryPause = NetworkView.firstRetry

    private static let firstRetry = TimeAmount.seconds(2)
    private static let longestRetry = TimeAmount.seconds(60)
    /// Called on each change of the path, with the previous path and the new one.
    var changed: ((_ before: NetworkPath, _ now: NetworkPath) -> Void)?
    /// Called when the machine's interfaces or addresses change, for example because it joined another network.
    package var addressesChanged: (() -> Void)?

    package init(_ monitor: any NetworkMonitoring, on loop: any EventLoop) {
        self.monitor = monitor
        self.loop = loop
    }

    deinit { stop?() }

    /// Stops watching; call it only while no load or dial is waiting.
    package func end() {
        isOver = true
        retry?.cancel()
        stop?()
        stop = nil
    }

    // MARK: The path

    private func begin() {
        guard stop == nil, !isOver else { return }
        path = monitor.current
        let bound = NIOLoopBound(Weak(self), eventLoop: loop)
        let loop = loop
        stop = monitor.watch { path in loop.execute { bound.value.view?.found(path) } }
    }

    private struct Weak {
        weak var view: NetworkView?
        init(_ view: NetworkView) { self.view = view }
    }

    private func found(_ new: NetworkPath) {
        guard !isOver else { return }
        let before = path
        path = new
        endInitialWait()
        if let before, before != new {
            changed?(before, new)
            if Self.addressSets(before) != Self.addressSets(new) { addressesChanged?() }
        }
        retryPause = Self.firstRetry
        // Wake loads even if the path is unchanged: the path does not represent every change.
        if new.isSatisfied || !new.interfaces.isEmpty { wakeLoads() }
    }

    private static func addressSets(_ path: NetworkPath) -> Set<[String]> {
        Set(path.interfaces.map { [$0.name] + $0.addresses.sorted() })
    }

    private func endInitialWait() {
        patience?.cancel()
        patience = nil
        let dials = waitingDials
        waitingDials = []
        for dial in dials { dial() }
    }

    // MARK: Dials

    /// Whether the state of the networks matters for connections to a host: false for loopback, unless the monitor covers loopback.
    func mayConcern(_ host: String) -> Bool { monitor.coversLoopback || !AddressLiteral.isLoopback(host) }

    /// Runs `dial` once the path is known: at once if it is already known, and after a second at the latest.
    func whenKnown(_ dial: @escaping () -> Void) {
        begin()
        guard path == nil, !hasTimedOut else { return dial() }
        waitingDials.append(dial)
        guard patience == nil else { return }
        let bound = NIOLoopBound(self, eventLoop: loop)
        patience = loop.scheduleTask(in: Self.patience) {
            bound.value.hasTimedOut = true
            bound.value.endInitialWait()
        }
    }

    /// How a connection is allowed to leave the machine.
    enum Way {
        case any
        /// Through this interface, to which the socket must be bound.
        case by(String)
        case refused(LoadError)

        var interface: String? { if case .by(let name) = self { name } else { nil } }
    }

    /// Returns the way for a connection to an address.
    ///
    /// If the route that the system chooses is prohibited, an allowed interface that also leads to the address is used instead. If
    /// the session specifies the source of its connections (an interface or an address), no other interface is used.
    func way(to address: String, from source: String?, _ prohibited: ProhibitedNetworks) -> Way {
        guard mayConcern(address), monitor.coversLoopback || !prohibited.isEmpty else { return .any }
        guard let path else {
            guard !prohibited.isEmpty else { return .any }
            return .refused(
                LoadError(
                    .notConnectedToInternet, "the network that leads to \(address) is unknown, and not every network is allowed"))
        }
        guard path.isSatisfied || !monitor.coversLoopback else {
            return .refused(LoadError(.notConnectedToInternet, "there is no network"))
        }
        // If no route leads to the address, the connection attempt fails soon enough.
        let bound = source.flatMap { source in path.interfaces.first { $0.name == source } }
        guard !prohibited.isEmpty, let interface = bound ?? monitor.interface(to: address, in: path) else { return .any }
        if interface.isUnknown {
            return .refused(LoadError(.notConnectedToInternet, "the network that leads to \(address) is unknown"))
        }
        guard let objection = prohibited.objection(to: interface) else { return .any }
        if source == nil,
            let other = path.interfaces.lazy.filter({ prohibited.objection(to: $0) == nil && $0.kind != .loopback })
                .prefix(Self.maximumDetourCount).first(where: { monitor.leads($0, to: address) })
        {
            return .by(other.name)
        }
        var error = LoadError(
            .notConnectedToInternet,
            "the network interface \(interface.name) leads to \(address) but is \(objection), which is not allowed")
        error.networkObjection = objection
        return .refused(error)
    }

    /// Returns the interface that a connection uses.
    func interface(from localAddress: String?) -> NetworkPath.Interface? {
        guard let path, let localAddress else { return nil }
        return monitor.coversLoopback ? path.interfaces.first : path.interface(withAddress: localAddress)
    }

    var isOffline: Bool { monitor.isOffline }

    // MARK: Connections

    /// Whether an established connection no longer leads anywhere, or uses a prohibited network.
    ///
    /// - Parameters:
    ///   - local: The address at this end.
    ///   - remote: The address of the peer.
    ///   - isBound: Whether the socket is bound to an interface or address: the kernel's routing then says nothing about the
    ///     socket.
    ///   - prohibited: The networks that the connection must not use.
    /// - Returns: True if the connection is lost; false if it is not, or if that is unknown.
    func isLost(from local: String?, to remote: String?, isBound: Bool, _ prohibited: ProhibitedNetworks) -> Bool {
        guard let path, let local, let remote, mayConcern(local) else { return false }
        if monitor.coversLoopback {
            guard path.isSatisfied else { return true }
            return path.interfaces.first.map { prohibited.objection(to: $0) != nil } ?? false
        }
        guard path.localAddresses.contains(local) else { return true }
        // If no interface of the path has the address, the connection stays within the machine, or on one link.
        guard let interface = path.interface(withAddress: local) else { return false }
        if prohibited.objection(to: interface) != nil { return true }
        return !isBound && monitor.interface(to: remote, in: path) == nil
    }

    // MARK: Loads

    /// A load's wait for a network.
    package final class Wait {
        let control: LoadControl
        fileprivate var hasEnded = false

        fileprivate init(_ control: LoadControl) { self.control = control }
    }

    /// Makes the load wait until the path changes; the request timeout is paused meanwhile.
    package func wait(_ control: LoadControl, now: NIODeadline) {
        begin()
        let wait = Wait(control)
        nextNumber += 1
        waitingLoads[ObjectIdentifier(wait)] = (nextNumber, wait)
        scheduleRetry()
        control.hold(now: now)
        control.enter(.offline(wait))
    }

    /// Ends the wait if the path changed or the load must end; returns whether the wait has ended.
    package func hasEnded(_ wait: Wait, now: NIODeadline) -> Bool {
        guard wait.hasEnded || wait.control.failure != nil else { return false }
        waitingLoads[ObjectIdentifier(wait)] = nil
        wait.control.enter(.elsewhere)
        wait.control.endHold(now: now)
        wait.control.markProgress(now)
        return true
    }

    private func scheduleRetry() {
        guard retry == nil, !isOver, !waitingLoads.isEmpty else { return }
        let bound = NIOLoopBound(Weak(self), eventLoop: loop)
        retry = loop.scheduleTask(in: retryPause) {
            guard let view = bound.value.view else { return }
            view.retry = nil
            view.retryPause = min(view.retryPause + view.retryPause, Self.longestRetry)
            if !view.isOffline { view.wakeLoads() }
            view.scheduleRetry()
        }
    }

    /// Wakes a few loads per turn of the loop, because there may be very many loads, and each of them starts a dial.
    private func wakeLoads() {
        let waits = waitingLoads.values.sorted { $0.number < $1.number }.map(\.load)
        wake(waits[...])
    }

    private func wake(_ waits: ArraySlice<Wait>) {
        for wait in waits.prefix(Self.loadsPerTurn) {
            wait.hasEnded = true
            wait.control.wake()
        }
        let rest = waits.dropFirst(Self.loadsPerTurn)
        guard !rest.isEmpty else { return }
        LoopDirectory.executor(of: loop).turns.runInLaterTurn { [self] in wake(rest) }
    }

    private static let loadsPerTurn = 64
    /// Limits the queries to the kernel: a machine may have thousands of interfaces, and most of them belong to containers and lead
    /// to no other network.
    private static let maximumDetourCount = 64
}
