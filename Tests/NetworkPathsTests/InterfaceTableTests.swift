// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import Testing

@testable import NetworkPaths

@Suite struct InterfaceTableTests {
    private func path(
        _ table: InterfaceTable, _ defaultRoutes: [Int] = [], kind: NetworkPath.Interface.Kind = .wired
    ) -> NetworkPath {
        table.path(defaultRoutes: defaultRoutes, facts: { _, _ in (kind, false) }, text: { "\($0[0])" })
    }

    private func table(_ messages: NetlinkReader.Message...) -> InterfaceTable {
        var table = InterfaceTable()
        for message in messages { _ = table.take(message) }
        return table
    }

    private static let up: UInt32 = 0x41

    @Test func `an interface counts if it is up, has a carrier and an address of more than link scope`() {
        let address = NetlinkReader.Message.address(index: 2, bytes: [1, 0, 0, 0], scope: 0, isUsable: true)
        let local = NetlinkReader.Message.address(index: 2, bytes: [9, 0, 0, 0], scope: 253, isUsable: true)
        #expect(path(table(.link(index: 2, name: "a", flags: Self.up), address)).interfaces.map(\.name) == ["a"])
        #expect(path(table(.link(index: 2, name: "a", flags: 0x01), address)).interfaces.isEmpty)
        #expect(path(table(.link(index: 2, name: "a", flags: 0x40), address)).interfaces.isEmpty)
        #expect(path(table(.link(index: 2, name: "a", flags: Self.up), local)).interfaces.isEmpty)
        #expect(path(table(.link(index: 2, name: "a", flags: Self.up | 0x08), address)).interfaces.isEmpty)
        #expect(path(table(address)).interfaces.isEmpty)
    }

    @Test func `local addresses include those of loopback and link scope`() {
        let table = table(
            .link(index: 1, name: "lo", flags: Self.up | 0x08), .link(index: 2, name: "a", flags: Self.up),
            .link(index: 3, name: "b", flags: 0), .address(index: 1, bytes: [7], scope: 0, isUsable: true),
            .address(index: 2, bytes: [8], scope: 253, isUsable: true), .address(index: 2, bytes: [9], scope: 0, isUsable: true),
            .address(index: 3, bytes: [5], scope: 0, isUsable: true)
        )
        #expect(path(table).localAddresses == ["7", "8", "9"])
        #expect(path(table).interfaces.map(\.addresses) == [["9"]])
    }

    @Test func `the interface of the default route comes first`() {
        let table = table(
            .link(index: 2, name: "a", flags: Self.up), .link(index: 3, name: "b", flags: Self.up),
            .address(index: 2, bytes: [1], scope: 0, isUsable: true), .address(index: 3, bytes: [2], scope: 0, isUsable: true)
        )
        #expect(path(table, [3]).interfaces.map(\.name) == ["b", "a"])
        #expect(path(table, [3]).isSatisfied && !path(table).isSatisfied)
    }

    @Test func `removed addresses and links disappear, and a new name is applied`() {
        var table = table(
            .link(index: 2, name: "a", flags: Self.up), .address(index: 2, bytes: [1], scope: 0, isUsable: true),
            .address(index: 2, bytes: [2], scope: 0, isUsable: true)
        )
        let changes = [table.take(.addressIsGone(index: 2, bytes: [1])), table.take(.addressIsGone(index: 2, bytes: [1]))]
        #expect(changes == [true, false])
        #expect(path(table).interfaces.first?.addresses == ["2"])
        let isNewName = table.take(.link(index: 2, name: "z", flags: Self.up))
        #expect(isNewName)
        #expect(path(table).interfaces.first?.name == "z")
        _ = table.take(.linkIsGone(index: 2))
        #expect(path(table).interfaces.isEmpty)
    }

    @Test func `the numbers of addresses and links are limited`() {
        var table = InterfaceTable()
        for index in 0..<InterfaceTable.limit * 2 { _ = table.take(.link(index: index, name: "a\(index)", flags: Self.up)) }
        #expect(table.links.count == InterfaceTable.limit)
        for number in 0..<UInt32(InterfaceTable.limit * 2) {
            _ = table.take(.address(index: Int(number % 64), bytes: NetlinkBytes.number(number), scope: 0, isUsable: true))
        }
        let path = table.path(defaultRoutes: [], facts: { _, _ in (.other, false) }, text: { "\($0)" })
        #expect(path.interfaces.map(\.addresses.count).reduce(0, +) == InterfaceTable.limit)
    }
}
