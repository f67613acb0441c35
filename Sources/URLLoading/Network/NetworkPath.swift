//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// What the networks of the machine are like at one moment.
///
/// Not in Apple's API; `NWPath` of its Network framework is the counterpart.
public struct NetworkPath: Sendable, Hashable {
    /// What an interface is.
    public enum InterfaceKind: String, Sendable, Hashable {
        /// Ethernet, or other hardware with a cable.
        case wired
        /// A wireless local network.
        case wifi
        /// A mobile network.
        case cellular
        /// Within the machine.
        case loopback
        /// A tunnel, a bridge, or what cannot be told.
        case other
    }

    /// A network interface that is up and has an address.
    public struct Interface: Sendable, Hashable {
        /// As the system calls it, as in "eth0".
        public var name: String
        /// What it is.
        public var kind: InterfaceKind
        /// Whether traffic costs the user money.
        public var isExpensive: Bool
        /// Whether the user wants little traffic.
        public var isConstrained: Bool
        /// Whether hardly any traffic can go over it, as by satellite.
        public var isUltraConstrained: Bool
        /// Its IP addresses as text.
        public var addresses: [String]

        /// Describes an interface, for a monitor of one's own.
        public init(
            name: String, kind: InterfaceKind, isExpensive: Bool = false, isConstrained: Bool = false,
            isUltraConstrained: Bool = false, addresses: [String] = []
        ) {
            self.name = name
            self.kind = kind
            self.isExpensive = isExpensive
            self.isConstrained = isConstrained
            self.isUltraConstrained = isUltraConstrained
            self.addresses = addresses
        }
    }

    /// The interfaces beyond the machine itself; first the one that leads to other networks.
    public var interfaces: [Interface]
    /// Whether other networks can be reached: there is a default route.
    public var isSatisfied: Bool

    /// Describes a path, for a monitor of one's own.
    public init(interfaces: [Interface], isSatisfied: Bool) {
        self.interfaces = interfaces
        self.isSatisfied = isSatisfied
    }

    /// A path over one interface, or none at all.
    ///
    /// - Parameter interface: The interface; nil where there is no network.
    /// - Returns: The path, which leads to other networks if there is an interface.
    public static func over(_ interface: Interface?) -> NetworkPath {
        NetworkPath(interfaces: interface.map { [$0] } ?? [], isSatisfied: interface != nil)
    }
}

/// Tells sessions of the machine's networks, in place of the system: in tests, or where a program knows better.
///
/// Not in Apple's API; `NWPathMonitor` of its Network framework is the counterpart.
///
/// The first interface of what it tells is taken for the one that every connection goes by, also those within the machine.
public protocol NetworkPathMonitor: AnyObject, Sendable {
    /// Begins to watch, for one session: `update` is to be called with the path as it is, soon, and after each change.
    ///
    /// Called from any thread, and so may `update` be. A session whose monitor says nothing goes on after a second as if any network were
    /// there, but not with loads that exclude networks.
    ///
    /// - Parameter update: Takes the path.
    /// - Returns: What the session keeps for as long as it wants to hear of changes.
    func start(_ update: @escaping @Sendable (NetworkPath) -> Void) -> NetworkPathWatch
}

/// A session's watch over a ``NetworkPathMonitor``.
public struct NetworkPathWatch: Sendable {
    let end: @Sendable () -> Void

    /// Makes a watch that ends by `end`, which is called once, when the session is done.
    public init(_ end: @escaping @Sendable () -> Void) { self.end = end }
}
