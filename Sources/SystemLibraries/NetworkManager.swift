// SPDX-License-Identifier: Apache-2.0

import CSystemLibraries

/// NetworkManager's view of the network: whether the network is metered, and whether anything can be reached through it.
///
/// The connection uses the system bus.
///
/// The connection is for use by one thread. Each request blocks that thread for at most a quarter of a second.
package final class NetworkManager {
    package struct Facts: Sendable, Hashable {
        /// Whether traffic costs money, or probably does.
        package var isMetered: Bool
        /// Whether NetworkManager has found that nothing can be reached.
        package var isOffline: Bool
    }

    static let library = SystemLibrary.functions(of: ["libsystemd.so.0"], clib_bus_load)

    private static let patience: UInt64 = 250_000

    /// The open bus; nil when the bus is gone.
    private var watch: OpaquePointer?
    /// Whether NetworkManager has failed to answer in time.
    ///
    /// If so, NetworkManager is asked again only after its next signal.
    private var isUnresponsive = false

    private init(_ watch: OpaquePointer) { self.watch = watch }

    deinit {
        if let watch { clib_network_watch_close(watch) }
    }

    /// Opens the bus; nil if the bus or the library for it is missing.
    ///
    /// - Parameter address: The address of a bus to use instead of the system bus.
    /// - Returns: The connection.
    package static func open(at address: String? = nil) -> NetworkManager? {
        guard let library, let watch = clib_network_watch_open(library.table, address, patience) else { return nil }
        return NetworkManager(watch)
    }

    /// The descriptor of the bus, which is readable when ``hasChanged()`` has something to process; nil when the bus is gone.
    package var descriptor: CInt? {
        guard let watch else { return nil }
        let descriptor = clib_network_watch_fd(watch)
        return descriptor >= 0 ? descriptor : nil
    }

    /// Returns whether NetworkManager signaled a change, started or stopped, or the bus is gone.
    package func hasChanged() -> Bool {
        guard let watch else { return false }
        let result = clib_network_watch_process(watch)
        if result < 0 { close() }
        isUnresponsive = false
        return result != 0
    }

    /// Reads the facts; nil if NetworkManager is not running, or does not answer in time.
    package func read() -> Facts? {
        guard let watch, !isUnresponsive else { return nil }
        var facts = clib_network_facts()
        guard clib_network_watch_read(watch, &facts) >= 0 else {
            isUnresponsive = true
            return nil
        }
        guard facts.is_there != 0 else { return nil }
        return Facts(isMetered: [1, 3].contains(facts.metered), isOffline: facts.connectivity == 1)
    }

    private func close() {
        if let watch { clib_network_watch_close(watch) }
        watch = nil
    }
}
