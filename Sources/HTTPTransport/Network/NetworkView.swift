//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import LoadingModel
package import NIOCore

/// What one session knows of the machine's networks.
///
/// It begins to watch them when a connection leaves the machine, or a load cares for what it leads over; from then on nothing is done
/// while nothing changes. Not `Sendable`: it is confined to its loop.
package final class NetworkView {
    /// How long a dial waits for a monitor that has not said anything yet.
    private static let patience = TimeAmount.seconds(1)

    private let loop: any EventLoop
    private let monitor: any NetworkMonitoring
    private var stop: (@Sendable () -> Void)?
    private var isOver = false
    private var path: NetworkPath?
    /// Dials that wait for the first path; told at the latest when patience ends.
    private var waitingDials: [() -> Void] = []
    private var patience: Scheduled<Void>?
    /// It did: who has not spoken by then is not waited for again.
    private var hasLostPatience = false
    /// Loads that wait for a network, in the order in which they began to.
    private var waitingLoads: [ObjectIdentifier: (number: Int, load: Wait)] = [:]
    private var nextNumber = 0
    /// Told of each change, with the path as it was before.
    var changed: ((_ before: NetworkPath, _ now: NetworkPath) -> Void)?

    package init(_ monitor: any NetworkMonitoring, on loop: any EventLoop) {
        self.monitor = monitor
        self.loop = loop
    }

    deinit { stop?() }

    /// Ends watching; nothing that waits is left by then.
    package func end() {
        isOver = true
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
        endPatience()
        guard let before, before != new else { return }
        changed?(before, new)
        guard new.isSatisfied || !new.interfaces.isEmpty else { return }
        wakeLoads()
    }

    private func endPatience() {
        patience?.cancel()
        patience = nil
        let dials = waitingDials
        waitingDials = []
        for dial in dials { dial() }
    }

    // MARK: Dials

    /// Whether connections to a host are the monitor's affair.
    func mayConcern(_ host: String) -> Bool { monitor.speaksForLoopback || !AddressLiteral.isLoopback(host) }

    /// Runs `dial` as soon as there is a path: at once where there is one, and in a second at the latest.
    func whenKnown(_ dial: @escaping () -> Void) {
        begin()
        guard path == nil, !hasLostPatience else { return dial() }
        waitingDials.append(dial)
        guard patience == nil else { return }
        let bound = NIOLoopBound(self, eventLoop: loop)
        patience = loop.scheduleTask(in: Self.patience) {
            bound.value.hasLostPatience = true
            bound.value.endPatience()
        }
    }

    /// Why no connection to an address is to be begun, by the interface of that name where there is one; nil where one may be.
    func objection(to address: String, by name: String?, _ prohibited: ProhibitedNetworks) -> LoadError? {
        guard mayConcern(address), monitor.speaksForLoopback || !prohibited.isEmpty else { return nil }
        guard let path else {
            guard !prohibited.isEmpty else { return nil }
            return LoadError(
                .notConnectedToInternet, "it cannot be told what network leads to \(address), and not every one is allowed")
        }
        guard path.isSatisfied || !monitor.speaksForLoopback else {
            return LoadError(.notConnectedToInternet, "there is no network")
        }
        // Where no route leads there, the system says so in a moment.
        let bound = name.flatMap { name in path.interfaces.first { $0.name == name } }
        guard !prohibited.isEmpty, let interface = bound ?? monitor.interface(to: address, in: path),
            let objection = prohibited.objection(to: interface)
        else { return nil }
        var error = LoadError(
            .notConnectedToInternet, "\(interface.name) leads to \(address), and is \(objection): that is not allowed")
        error.networkObjection = objection
        return error
    }

    /// The interface that a connection goes by.
    func interface(from localAddress: String?) -> NetworkPath.Interface? {
        guard let path, let localAddress else { return nil }
        return monitor.speaksForLoopback ? path.interfaces.first : path.interface(withAddress: localAddress)
    }

    var isOffline: Bool { monitor.isOffline }

    // MARK: Connections

    /// Whether a connection that stands leads nowhere any more, or where it may not lead.
    func isLost(from local: String?, to remote: String?, _ prohibited: ProhibitedNetworks) -> Bool {
        guard let path, let local, let remote, mayConcern(local) else { return false }
        if monitor.speaksForLoopback {
            guard path.isSatisfied else { return true }
        } else {
            guard path.interface(withAddress: local) != nil else { return true }
        }
        guard let interface = monitor.interface(to: remote, in: path) else { return true }
        return prohibited.objection(to: interface) != nil
    }

    // MARK: Loads

    /// A load's waiting for a network.
    package final class Wait {
        let control: LoadControl
        fileprivate var hasEnded = false

        fileprivate init(_ control: LoadControl) { self.control = control }
    }

    /// The load waits until the path changes, and is woken then; the request timeout does not run meanwhile.
    package func wait(_ control: LoadControl, now: NIODeadline) {
        begin()
        let wait = Wait(control)
        nextNumber += 1
        waitingLoads[ObjectIdentifier(wait)] = (nextNumber, wait)
        control.hold(now: now)
        control.place = .offline(wait)
    }

    /// Whether a load's waiting is over: the path changed, or the load must end.
    package func hasEnded(_ wait: Wait, now: NIODeadline) -> Bool {
        guard wait.hasEnded || wait.control.failure != nil else { return false }
        waitingLoads[ObjectIdentifier(wait)] = nil
        wait.control.place = .elsewhere
        wait.control.letGo(now: now)
        wait.control.markProgress(now)
        return true
    }

    /// A few in each turn: there may be very many, and each begins a dial.
    private func wakeLoads() {
        let waits = waitingLoads.values.sorted { $0.number < $1.number }.map(\.load)
        wake(waits[...])
    }

    private func wake(_ waits: ArraySlice<Wait>) {
        for wait in waits.prefix(Self.wokenPerTurn) {
            wait.hasEnded = true
            wait.control.wake()
        }
        let rest = waits.dropFirst(Self.wokenPerTurn)
        guard !rest.isEmpty else { return }
        LoopDirectory.executor(of: loop).turns.whenNext { [self] in wake(rest) }
    }

    private static let wokenPerTurn = 64
}
