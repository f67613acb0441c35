// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import LoadingModel
internal import NetworkPaths
internal import Synchronization

/// Adapts an app's monitor to the engine.
final class AppPathMonitor: NetworkMonitoring {
    private let monitor: any NetworkPathMonitor
    /// The queue for the app's code, which never runs on an event loop.
    private let calls = DispatchQueue(label: "URLLoading.NetworkPathMonitor")
    private let path = Mutex<LoadingModel.NetworkPath?>(nil)

    init(_ monitor: any NetworkPathMonitor) { self.monitor = monitor }

    var coversLoopback: Bool { true }
    var current: LoadingModel.NetworkPath? { path.withLock { $0 } }
    var isOffline: Bool { current?.isSatisfied == false }

    func watch(_ changed: @escaping @Sendable (LoadingModel.NetworkPath) -> Void) -> @Sendable () -> Void {
        let (calls, pendingWatch) = (calls, PendingWatch())
        calls.async { [self] in
            let started = monitor.start { [weak self] new in
                let new = new.forEngine
                self?.path.withLock { $0 = new }
                changed(new)
            }
            pendingWatch.end.withLock { $0 = started.end }
        }
        // On the same serial queue, the end runs after the start, so every watch that was started is also ended.
        return { calls.async { pendingWatch.end.withLock { $0.take() }?() } }
    }

    /// Holds the closure that ends a watch; nil until the watch has been started.
    private final class PendingWatch: Sendable {
        let end = Mutex<(@Sendable () -> Void)?>(nil)
    }

    func interface(to address: String, in path: LoadingModel.NetworkPath) -> LoadingModel.NetworkPath.Interface? {
        path.interfaces.first ?? (path.isSatisfied ? .init(name: "", index: 0, kind: .other) : nil)
    }

    /// Returns false: the app's monitor does not report routes, so connections are never moved to another interface.
    func leads(_ interface: LoadingModel.NetworkPath.Interface, to address: String) -> Bool { false }
}

extension NetworkPath {
    var forEngine: LoadingModel.NetworkPath {
        LoadingModel.NetworkPath(
            interfaces: interfaces.enumerated().map { index, interface in
                LoadingModel.NetworkPath.Interface(
                    name: interface.name, index: index + 1, kind: .init(rawValue: interface.kind.rawValue) ?? .other,
                    isExpensive: interface.isExpensive, isConstrained: interface.isConstrained,
                    isUltraConstrained: interface.isUltraConstrained, addresses: interface.addresses
                )
            },
            isSatisfied: isSatisfied
        )
    }

    init(_ path: LoadingModel.NetworkPath) {
        self.init(
            interfaces: path.interfaces.map { interface in
                Interface(
                    name: interface.name, kind: .init(rawValue: interface.kind.rawValue) ?? .other,
                    isExpensive: interface.isExpensive, isConstrained: interface.isConstrained,
                    isUltraConstrained: interface.isUltraConstrained, addresses: interface.addresses
                )
            },
            isSatisfied: path.isSatisfied
        )
    }

    /// Returns the current state of the machine's networks.
    ///
    /// - Returns: The system's path, or an unsatisfied path without interfaces if the system reports no path within a second.
    public static func current() async -> NetworkPath {
        let monitor = SystemPathMonitor.shared
        if let path = monitor.current { return NetworkPath(path) }
        return await withCheckedContinuation { continuation in
            let once = AnswerOnce<LoadingModel.NetworkPath> { path in
                continuation.resume(returning: path.map { NetworkPath($0) } ?? NetworkPath(interfaces: [], isSatisfied: false))
            }
            let stop = monitor.watch { once($0) }
            DispatchQueue.global().asyncAfter(deadline: .now() + 1) {
                stop()
                once(nil)
            }
        }
    }
}

extension URLSessionConfiguration {
    /// The monitor that reports the machine's networks to the session; nil, the default, means the system's monitor.
    ///
    /// Not in Apple's API.
    public var networkPathMonitor: (any NetworkPathMonitor)? {
        get { get { $0.networkPathMonitor } }
        set { set { $0.networkPathMonitor = newValue } }
    }
}
