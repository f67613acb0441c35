// SPDX-License-Identifier: Apache-2.0

/// The state of the machine's networks at one moment.
///
/// Not in Apple's API; the counterpart is `NWPath` in its Network framework.
public struct NetworkPath: Sendable, Hashable {
    /// The type of an interface.
    public enum InterfaceKind: String, Sendable, Hashable {
        /// Ethernet or another wired interface.
        case wired
        /// A wireless local network.
        case wifi
        /// A mobile network.
        case cellular
        /// The loopback interface.
        case loopback
        /// A tunnel, a bridge, or an unknown interface.
        case other
    }

    /// A network interface that is up and has an address.
    public struct Interface: Sendable, Hashable {
        /// The system's name of the interface, such as "eth0".
        public var name: String
        /// The type of the interface.
        public var kind: InterfaceKind
        /// Whether traffic costs the user money.
        public var isExpensive: Bool
        /// Whether the interface is in low data mode.
        public var isConstrained: Bool
        /// Whether the interface can carry only very little traffic, as a satellite link does.
        public var isUltraConstrained: Bool
        /// The IP addresses as text.
        public var addresses: [String]

        /// Describes an interface, for a custom monitor.
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

    /// The interfaces except loopback; the first interface leads to other networks.
    public var interfaces: [Interface]
    /// Whether other networks are reachable: there is a default route.
    public var isSatisfied: Bool

    /// Describes a path, for a custom monitor.
    public init(interfaces: [Interface], isSatisfied: Bool) {
        self.interfaces = interfaces
        self.isSatisfied = isSatisfied
    }

    /// Returns a path over one interface, or over no interface.
    ///
    /// - Parameter interface: The interface; nil if there is no network.
    /// - Returns: The path, which leads to other networks if there is an interface.
    public static func over(_ interface: Interface?) -> NetworkPath {
        NetworkPath(interfaces: interface.map { [$0] } ?? [], isSatisfied: interface != nil)
    }
}

/// Reports the machine's networks to sessions, in place of the system's monitor: for tests, or for a program with better
/// information.
///
/// Not in Apple's API; the counterpart is `NWPathMonitor` in its Network framework.
///
/// Every connection, even to the machine itself, is assumed to use the first interface that the monitor reports.
public protocol NetworkPathMonitor: AnyObject, Sendable {
    /// Starts a watch for one session.
    ///
    /// The monitor must soon call `update` with the current path, and again after each change. This method is called from any
    /// thread; `update` may be called from any thread, too. If the monitor reports nothing for a second, the session assumes that
    /// every network is available. For loads that exclude some networks, however, the session assumes that there is no network.
    ///
    /// - Parameter update: Receives the path.
    /// - Returns: A watch, which the session ends when the session needs no more updates.
    func start(_ update: @escaping @Sendable (NetworkPath) -> Void) -> NetworkPathWatch
}

/// A session's watch over a ``NetworkPathMonitor``.
public struct NetworkPathWatch: Sendable {
    let end: @Sendable () -> Void

    /// Makes a watch with a closure that is called once, when the session needs no more updates.
    public init(_ end: @escaping @Sendable () -> Void) { self.end = end }
}
