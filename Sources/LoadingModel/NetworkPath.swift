// SPDX-License-Identifier: Apache-2.0

/// The state of the machine's networks at one moment.
package struct NetworkPath: Sendable, Hashable {
    /// A network interface that is up and has an address that is not link-local.
    package struct Interface: Sendable, Hashable {
        package enum Kind: String, Sendable, Hashable, CaseIterable { case wired, wifi, cellular, loopback, other }

        package var name: String
        package var index: Int
        package var kind: Kind
        /// Whether traffic costs the user money.
        package var isExpensive: Bool
        /// Whether the user wants low data usage.
        package var isConstrained: Bool
        /// Whether the interface allows very little traffic, as a satellite link does.
        package var isUltraConstrained: Bool
        /// IP addresses as text, without a prefix length.
        package var addresses: [String]

        /// An interface about which nothing is known.
        package static let unknown = Interface(name: "", index: -1, kind: .other)
        package var isUnknown: Bool { index == -1 }

        package init(
            name: String, index: Int, kind: Kind, isExpensive: Bool = false, isConstrained: Bool = false,
            isUltraConstrained: Bool = false, addresses: [String] = []
        ) {
            self.name = name
            self.index = index
            self.kind = kind
            self.isExpensive = isExpensive
            self.isConstrained = isConstrained
            self.isUltraConstrained = isUltraConstrained
            self.addresses = addresses
        }
    }

    /// All interfaces except loopback; the interface with the default route comes first.
    package var interfaces: [Interface]
    /// Whether other networks can be reached: there is a default route.
    package var isSatisfied: Bool
    /// Every usable address of the machine, including loopback and link-local addresses.
    package var localAddresses: Set<String>

    package init(interfaces: [Interface] = [], isSatisfied: Bool, localAddresses: Set<String> = []) {
        self.interfaces = interfaces
        self.localAddresses = localAddresses
        self.isSatisfied = isSatisfied
    }

    package func interface(withAddress address: String) -> Interface? {
        interfaces.first { $0.addresses.contains(address) }
    }
}

/// Networks that a load must not use.
package struct ProhibitedNetworks: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    package static let cellular = ProhibitedNetworks(rawValue: 1 << 0)
    package static let expensive = ProhibitedNetworks(rawValue: 1 << 1)
    package static let constrained = ProhibitedNetworks(rawValue: 1 << 2)
    package static let ultraConstrained = ProhibitedNetworks(rawValue: 1 << 3)

    /// Returns why an interface must not be used; nil if it may be used.
    package func objection(to interface: NetworkPath.Interface) -> LoadError.NetworkObjection? {
        if contains(.cellular), interface.kind == .cellular { return .cellular }
        if contains(.expensive), interface.isExpensive { return .expensive }
        if contains(.ultraConstrained), interface.isUltraConstrained { return .ultraConstrained }
        if contains(.constrained), interface.isConstrained { return .constrained }
        return nil
    }
}

/// Observes the machine's networks.
package protocol NetworkMonitoring: AnyObject, Sendable {
    /// Whether the monitor also applies to connections within the machine: an app's monitor does, the system's does not.
    var coversLoopback: Bool { get }
    /// The latest path; nil until the first path is known.
    var current: NetworkPath? { get }

    /// Calls `changed` soon with the current path, and after each change, from any thread; calls do not overlap.
    ///
    /// - Returns: A closure that ends the observation; a call of `changed` that has begun may still arrive afterwards.
    func watch(_ changed: @escaping @Sendable (NetworkPath) -> Void) -> @Sendable () -> Void

    /// Returns the interface that the current route to an IP address uses; nil if there is no route or the route is unknown.
    ///
    /// Does not block.
    func interface(to address: String, in path: NetworkPath) -> NetworkPath.Interface?

    /// Whether an IP address is reachable through this interface, even if the preferred route uses another one.
    ///
    /// Does not block.
    func leads(_ interface: NetworkPath.Interface, to address: String) -> Bool

    /// Whether no destination beyond the machine is reachable at present.
    ///
    /// Does not block.
    var isOffline: Bool { get }
}
