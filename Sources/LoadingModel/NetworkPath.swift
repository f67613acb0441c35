//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// What the networks of the machine are like at one moment.
package struct NetworkPath: Sendable, Hashable {
    /// A network interface that is up and has an address beyond its link.
    package struct Interface: Sendable, Hashable {
        package enum Kind: String, Sendable, Hashable, CaseIterable { case wired, wifi, cellular, loopback, other }

        package var name: String
        package var index: Int
        package var kind: Kind
        /// Traffic costs the user money.
        package var isExpensive: Bool
        /// The user wants little traffic.
        package var isConstrained: Bool
        /// Hardly any traffic can go over it, as by satellite.
        package var isUltraConstrained: Bool
        /// IP addresses as text, without a prefix length.
        package var addresses: [String]

        /// Stands for one of which nothing is known, not even whether it is there.
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

    /// Those beyond the machine itself; first the one that leads to other networks.
    package var interfaces: [Interface]
    /// Whether other networks can be reached: there is a default route.
    package var isSatisfied: Bool
    /// Every address of the machine's that can be used, also within it, or on one link alone.
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

    /// Why an interface is not to be used; nil where it may be.
    package func objection(to interface: NetworkPath.Interface) -> LoadError.NetworkObjection? {
        if contains(.cellular), interface.kind == .cellular { return .cellular }
        if contains(.expensive), interface.isExpensive { return .expensive }
        if contains(.ultraConstrained), interface.isUltraConstrained { return .ultraConstrained }
        if contains(.constrained), interface.isConstrained { return .constrained }
        return nil
    }
}

/// Watches the networks of the machine.
package protocol NetworkMonitoring: AnyObject, Sendable {
    /// Whether it also speaks for connections within the machine: an app's monitor does, the system's does not.
    var speaksForLoopback: Bool { get }
    /// The path as it was last found, or nil before it was.
    var current: NetworkPath? { get }

    /// Calls `changed` soon with the path as it is, and after each change, from any thread and one call after the other.
    ///
    /// - Returns: Ends that; a call that was begun may still come.
    func watch(_ changed: @escaping @Sendable (NetworkPath) -> Void) -> @Sendable () -> Void

    /// The interface by which packets to an IP address leave as things stand; nil where no route leads there, or that is not known.
    ///
    /// Does not wait.
    func interface(to address: String, in path: NetworkPath) -> NetworkPath.Interface?

    /// Whether a route leads to an IP address by this interface, though packets may leave by another.
    ///
    /// Does not wait.
    func leads(_ interface: NetworkPath.Interface, to address: String) -> Bool

    /// Whether nothing beyond the machine can be reached, as things stand.
    ///
    /// Does not wait.
    var isOffline: Bool { get }
}
