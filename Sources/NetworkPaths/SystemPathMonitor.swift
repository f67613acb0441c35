// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
import LibC
package import LoadingModel
import SystemLibraries
import SystemThreads

/// Watches the machine's links, addresses and routes on a separate thread: reading sysfs or asking other processes takes too long
/// for an event loop.
///
/// The thread starts with the first watch and then sleeps until something changes.
///
/// Sendable because shared state that changes is accessed only under the lock, and all other state is immutable or confined to the
/// thread.
package final class SystemPathMonitor: NetworkMonitoring, @unchecked Sendable {
    /// The monitor of the whole process.
    package static let shared = SystemPathMonitor()

    /// How long to wait, in milliseconds, before changes are read again, so that a burst of changes is reported once.
    private static let pause: CInt = 100

    /// RTM_GETLINK and RTM_GETADDR.
    private static let getLinks: UInt16 = 18
    private static let getAddresses: UInt16 = 22

    let kinds: InterfaceKinds
    private let bus: String?
    private let lock = Monitor()
    private var watchers: [Int: @Sendable (NetworkPath) -> Void] = [:]
    /// Watchers that have not been notified yet.
    private var newWatchers: Set<Int> = []
    private var nextWatcher = 0
    private var path: NetworkPath?
    /// The facts that NetworkManager reports, if it is running.
    private var managed: NetworkManager.Facts?
    private var hasBegun = false
    /// The eventfd that wakes the thread; negative if no eventfd could be created.
    private let event: CInt

    /// Creates a separate monitor; outside of tests, use ``shared``.
    ///
    /// - Parameters:
    ///   - sysfs: Where sysfs is mounted.
    ///   - bus: The address of a bus to use instead of the system bus.
    package init(sysfs: String = "/sys", bus: String? = nil) {
        self.bus = bus
        kinds = InterfaceKinds(root: sysfs)
        event = cls_event()
    }

    // MARK: NetworkMonitoring

    package var coversLoopback: Bool { false }

    package var current: NetworkPath? { lock.locked { path } }

    package func watch(_ changed: @escaping @Sendable (NetworkPath) -> Void) -> @Sendable () -> Void {
        let (number, isFirst) = lock.locked {
            nextWatcher += 1
            watchers[nextWatcher] = changed
            newWatchers.insert(nextWatcher)
            defer { hasBegun = true }
            return (nextWatcher, !hasBegun)
        }
        if isFirst {
            // If the thread cannot start, the path stays unknown and no watcher is called.
            _ = Threads.start("NetworkPaths") { self.run() }
        } else {
            _ = cls_event_signal(event)
        }
        return { [self] in
            lock.locked {
                watchers[number] = nil
                newWatchers.remove(number)
            }
        }
    }

    package func interface(to address: String, in path: NetworkPath) -> NetworkPath.Interface? {
        switch Self.route(to: address) {
        case .none: nil
        case .unknown: .unknown
        case .by(let index):
            path.interfaces.first { $0.index == index } ?? NetworkPath.Interface(name: "", index: index, kind: .other)
        }
    }

    package func leads(_ interface: NetworkPath.Interface, to address: String) -> Bool {
        guard case .by(interface.index) = Self.route(to: address, by: interface.index) else { return false }
        return true
    }

    package var isOffline: Bool { Self.defaultRoutes.isEmpty || lock.locked { managed?.isOffline } == true }

    // MARK: Routes

    private enum Way { case none, unknown, by(Int) }

    /// The IPv4 and the IPv6 address of a root name server, which is neither local nor on a nearby network.
    ///
    /// Nothing is sent to these addresses.
    private static let farAddresses: [[UInt8]] = [
        [198, 41, 0, 4], [0x20, 0x01, 0x05, 0x03, 0xBA, 0x3E, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0x30],
    ]

    /// The interfaces that lead to other networks, without duplicates.
    static var defaultRoutes: [Int] {
        var found: [Int] = []
        for address in farAddresses {
            switch way(to: address) {
            case .by(let index): if !found.contains(index) { found.append(index) }
            case .none: break
            // If the route is unknown, do not report the machine as offline.
            case .unknown: found.append(0)
            }
        }
        return found
    }

    private static func route(to address: String, by interface: Int = 0) -> Way {
        var bytes = [UInt8](repeating: 0, count: 16)
        let bare = String(address.prefix { $0 != "%" })
        // The zone in the address names the interface.
        if let zone = Int(address.dropFirst(bare.count + 1)), zone > 0 {
            return [0, zone].contains(interface) ? .by(zone) : .none
        }
        if inet_pton(AF_INET, bare, &bytes) == 1 { return way(to: Array(bytes.prefix(4)), by: interface) }
        return inet_pton(AF_INET6, bare, &bytes) == 1 ? way(to: bytes, by: interface) : .unknown
    }

    private static func way(to address: [UInt8], by interface: Int = 0) -> Way {
        let result = cls_route(address, CInt(address.count), CInt(clamping: interface))
        if result >= 0 { return .by(Int(result)) }
        return [ENETUNREACH, EHOSTUNREACH, EACCES, EINVAL, ENETDOWN].contains(-result) ? .none : .unknown
    }

    private static func text(_ address: [UInt8]) -> String? {
        var buffer = [CChar](repeating: 0, count: 64)
        let family = address.count == 4 ? AF_INET : AF_INET6
        guard inet_ntop(family, address, &buffer, socklen_t(buffer.count)) != nil else { return nil }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    // MARK: The thread

    private func run() {
        let manager = NetworkManager.open(at: bus)
        var pauses: CInt = 0
        while true {
            let socket = cls_netlink_open()
            guard socket >= 0 else {
                // The cause may be a lack of descriptors. ``NetworkView`` limits how long loads wait for a path.
                pauses += 1
                _ = cls_wait(-1, event, min(1_000 << min(pauses, 6), 60_000))
                continue
            }
            if watch(socket, manager) { pauses = 0 } else { pauses += 1 }
            _ = cls_close(socket)
        }
    }

    /// Reads the current state, and then processes changes until the socket fails or messages are lost.
    ///
    /// Returns false if the state could not be read at all.
    private func watch(_ socket: CInt, _ manager: NetworkManager?) -> Bool {
        guard var table = read(socket) else {
            _ = cls_wait(-1, event, 1_000)
            return false
        }
        read(manager)
        while true {
            publish(table)
            // Changes come in bursts.
            _ = cls_wait_any([event], 1, Self.pause)
            var hasChanged = false
            while !hasChanged {
                let watched = [socket, event] + (manager?.descriptor.map { [$0] } ?? [])
                let ready = cls_wait_any(watched, CInt(watched.count), -1)
                if ready < 0 { return true }
                if ready & 2 != 0 {
                    _ = cls_wait(-1, event, 0)
                    notifyNewWatchers()
                }
                if ready & 4 != 0, manager?.hasChanged() == true {
                    read(manager)
                    hasChanged = true
                }
                guard ready & 1 != 0 else { continue }
                switch take(from: socket, into: &table) {
                case .some(let changed): hasChanged = hasChanged || changed
                case nil: return true
                }
            }
        }
    }

    private func read(_ manager: NetworkManager?) {
        // D-Bus signals that arrived during the calls are consumed here, because they no longer make the descriptor readable.
        for _ in 0..<4 {
            let facts = manager?.read()
            lock.locked { managed = facts }
            if manager?.hasChanged() != true { break }
        }
    }

    /// Returns all links and addresses; nil if they cannot be read.
    private func read(_ socket: CInt) -> InterfaceTable? {
        var table = InterfaceTable()
        for (number, kind) in [(UInt32(1), Self.getLinks), (2, Self.getAddresses)] {
            guard cls_netlink_dump(socket, kind, number) == 0 else { return nil }
            var isDone = false
            while !isDone {
                guard cls_wait_any([socket], 1, 5_000) == 1, let bytes = receive(socket) else { return nil }
                var reader = NetlinkReader(bytes)
                while let message = reader.next() {
                    switch message {
                    case .done(number): isDone = true
                    case .failed(number, _), .lost: return nil
                    default: _ = table.take(message)
                    }
                }
            }
        }
        return table
    }

    /// Applies all pending messages.
    ///
    /// Returns whether the messages changed anything, or nil if some messages were lost.
    private func take(from socket: CInt, into table: inout InterfaceTable) -> Bool? {
        var hasChanged = false
        while true {
            guard let bytes = receive(socket) else { return nil }
            if bytes.isEmpty { return hasChanged }
            var reader = NetlinkReader(bytes)
            while let message = reader.next() {
                if message == .lost { return nil }
                if table.take(message) { hasChanged = true }
            }
        }
    }

    /// Returns the bytes of one receive; empty if no bytes are pending, nil if messages were lost.
    private func receive(_ socket: CInt) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = cls_netlink_receive(socket, &bytes, bytes.count)
        if count == -Int64(EAGAIN) { return [] }
        return count < 0 ? nil : Array(bytes.prefix(Int(count)))
    }

    private func publish(_ table: InterfaceTable) {
        let routes = Self.defaultRoutes
        // NetworkManager reports whether the primary connection, which uses the interface of the default route, is metered.
        let isMetered = lock.locked { managed?.isMetered } ?? false
        let new = table.path(
            defaultRoutes: routes,
            facts: { index, link in (kinds.kind(of: link.name), isMetered && index == routes.first) }, text: Self.text
        )
        let recipients: [@Sendable (NetworkPath) -> Void] = lock.locked {
            path = new
            newWatchers = []
            // Notify all watchers even if the path is unchanged: loads may wait for a change that the path does not show.
            return watchers.sorted { $0.key < $1.key }.map(\.value)
        }
        for watcher in recipients { watcher(new) }
    }

    private func notifyNewWatchers() {
        guard let path = current else { return }
        let recipients: [@Sendable (NetworkPath) -> Void] = lock.locked {
            let numbers = newWatchers.sorted()
            newWatchers = []
            return numbers.compactMap { watchers[$0] }
        }
        for watcher in recipients { watcher(path) }
    }
}
