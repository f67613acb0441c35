//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import CSystemLibraries

/// NetworkManager, as far as it tells what the network costs and whether it leads anywhere, over the system's bus.
///
/// To be used by one thread, which may wait for a quarter of a second at each question.
package final class NetworkManager {
    package struct Facts: Sendable, Hashable {
        /// Traffic costs money, or probably does.
        package var isMetered: Bool
        /// It has found that nothing can be reached.
        package var isOffline: Bool
    }

    /// Sendable because nothing changes what it points to, and nothing frees it.
    struct Library: @unchecked Sendable {
        let functions: OpaquePointer
    }

    static let library: Library? = {
        guard let opened = SystemLibrary.open(["libsystemd.so.0"]) else { return nil }
        var missing: UnsafePointer<CChar>?
        guard let functions = csl_bus_load(opened.handle, &missing) else {
            opened.reject(missing: missing.map { String(cString: $0) } ?? "")
            return nil
        }
        return Library(functions: functions)
    }()

    private static let patience: UInt64 = 250_000

    /// Nil once the bus is gone.
    private var watch: OpaquePointer?
    /// It did not answer: it is asked again when something is heard of it.
    private var isMute = false

    private init(_ watch: OpaquePointer) { self.watch = watch }

    deinit {
        if let watch { csl_network_watch_close(watch) }
    }

    /// Opens the bus; nil where there is none, or no library for it.
    ///
    /// - Parameter address: Of another bus than the system's.
    /// - Returns: The watch over it.
    package static func open(at address: String? = nil) -> NetworkManager? {
        guard let library, let watch = csl_network_watch_open(library.functions, address, patience) else { return nil }
        return NetworkManager(watch)
    }

    /// Readable when ``hasChanged()`` has something to look at; nil once the bus is gone.
    package var descriptor: CInt? {
        guard let watch else { return nil }
        let descriptor = csl_network_watch_fd(watch)
        return descriptor >= 0 ? descriptor : nil
    }

    /// Whether it said that something changed, came or went, or the bus is gone.
    package func hasChanged() -> Bool {
        guard let watch else { return false }
        let result = csl_network_watch_process(watch)
        if result < 0 { close() }
        isMute = false
        return result != 0
    }

    /// What it says; nil where it is not there, or does not answer in time.
    package func read() -> Facts? {
        guard let watch, !isMute else { return nil }
        var facts = csl_network_facts()
        guard csl_network_watch_read(watch, &facts) >= 0 else {
            isMute = true
            return nil
        }
        guard facts.is_there != 0 else { return nil }
        return Facts(isMetered: [1, 3].contains(facts.metered), isOffline: facts.connectivity == 1)
    }

    private func close() {
        if let watch { csl_network_watch_close(watch) }
        watch = nil
    }
}
