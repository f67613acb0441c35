// SPDX-License-Identifier: Apache-2.0

import LoadingModel

/// The machine's interfaces and addresses, built from the kernel's messages.
struct InterfaceTable {
    struct Link: Hashable {
        var name: String
        var isUp: Bool
        var isLoopback: Bool
    }

    /// The maximum number of links, and of addresses; no machine should reach it, and further entries are dropped.
    static let limit = 16_384

    private(set) var links: [Int: Link] = [:]
    private struct Address: Hashable {
        var bytes: [UInt8]
        /// Whether the scope is link or host, so that the address is not routable beyond the link.
        var isLocal: Bool
    }

    private var addresses: [Int: [Address]] = [:]
    private var addressCount = 0

    /// Applies a message; returns whether the message may have changed the path.
    mutating func take(_ message: NetlinkReader.Message) -> Bool {
        switch message {
        case .link(let index, let name, let flags):
            guard links[index] != nil || links.count < Self.limit else { return false }
            // IFF_UP and IFF_RUNNING: the link is up and has a carrier.
            let isUp = flags & 0x41 == 0x41
            let link = Link(name: name ?? links[index]?.name ?? "", isUp: isUp, isLoopback: flags & 0x08 != 0)
            return links.updateValue(link, forKey: index) != link
        case .linkIsGone(let index):
            addressCount -= addresses.removeValue(forKey: index)?.count ?? 0
            return links.removeValue(forKey: index) != nil
        case .address(let index, let bytes, let scope, let isUsable):
            guard isUsable else { return remove(bytes, of: index) }
            let address = Address(bytes: bytes, isLocal: scope >= 253)
            guard addresses[index]?.contains(address) != true else { return false }
            _ = remove(bytes, of: index)
            guard addressCount < Self.limit else { return false }
            addresses[index, default: []].append(address)
            addressCount += 1
            return true
        case .addressIsGone(let index, let bytes):
            return remove(bytes, of: index)
        case .routesChanged:
            return true
        case .done, .failed, .lost:
            return false
        }
    }

    private mutating func remove(_ bytes: [UInt8], of index: Int) -> Bool {
        guard let place = addresses[index]?.firstIndex(where: { $0.bytes == bytes }) else { return false }
        addresses[index]?.remove(at: place)
        addressCount -= 1
        return true
    }

    /// Returns the network path that the table describes.
    ///
    /// - Parameters:
    ///   - defaultRoutes: The interfaces that lead to other networks, the best first.
    ///   - facts: Returns the kind of a link, and whether the link is expensive.
    ///   - text: Formats an address.
    /// - Returns: A path of the interfaces that are up and have either an address beyond link scope or a default route.
    func path(
        defaultRoutes: [Int], facts: (Int, Link) -> (kind: NetworkPath.Interface.Kind, isExpensive: Bool),
        text: ([UInt8]) -> String?
    ) -> NetworkPath {
        var interfaces: [NetworkPath.Interface] = []
        var localAddresses: Set<String> = []
        for (index, link) in links.sorted(by: { $0.key < $1.key }) where link.isUp {
            let addresses = addresses[index] ?? []
            localAddresses.formUnion(addresses.compactMap { text($0.bytes) })
            guard !link.isLoopback else { continue }
            let texts = addresses.compactMap { $0.isLocal ? nil : text($0.bytes) }
            guard !texts.isEmpty || defaultRoutes.contains(index) else { continue }
            let facts = facts(index, link)
            interfaces.append(
                NetworkPath.Interface(
                    name: link.name, index: index, kind: facts.kind, isExpensive: facts.isExpensive, addresses: texts.sorted()
                )
            )
        }
        let rank = { (index: Int) in defaultRoutes.firstIndex(of: index) ?? defaultRoutes.count }
        interfaces.sort { (rank($0.index), $0.index) < (rank($1.index), $1.index) }
        return NetworkPath(interfaces: interfaces, isSatisfied: !defaultRoutes.isEmpty, localAddresses: localAddresses)
    }
}
