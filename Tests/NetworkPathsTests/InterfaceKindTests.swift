// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingModel
import LoadingTestKit
import Testing

@testable import NetworkPaths

@Suite struct InterfaceKindTests {
    @Test func `the kind of an interface is read from sysfs`() throws {
        let folder = try TemporaryDirectory()
        func make(_ name: String, uevent: String, type: String = "1", others: [String] = []) throws {
            let place = folder.url.appendingPathComponent("class/net/\(name)")
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            try Data(uevent.utf8).write(to: place.appendingPathComponent("uevent"))
            try Data((type + "\n").utf8).write(to: place.appendingPathComponent("type"))
            for other in others {
                try FileManager.default.createDirectory(
                    at: place.appendingPathComponent(other), withIntermediateDirectories: true)
            }
        }
        try make("eth0", uevent: "INTERFACE=eth0\nIFINDEX=2\n", others: ["device"])
        try make("wlan0", uevent: "DEVTYPE=wlan\nINTERFACE=wlan0\n", others: ["device"])
        try make("old0", uevent: "INTERFACE=old0\n", others: ["device", "wireless"])
        try make("wwan0", uevent: "DEVTYPE=wwan\n", type: "65534")
        try make("lo", uevent: "INTERFACE=lo\n", type: "772")
        try make("br0", uevent: "DEVTYPE=bridge\nINTERFACE=br0\n")
        let kinds = InterfaceKinds(root: folder.path)
        let expected: [(String, NetworkPath.Interface.Kind)] = [
            ("eth0", .wired), ("wlan0", .wifi), ("old0", .wifi), ("wwan0", .cellular), ("lo", .loopback), ("br0", .other),
            ("gone0", .other), ("", .other), ("..", .other), ("../net/eth0", .other),
        ]
        for (name, kind) in expected { #expect(kinds.kind(of: name) == kind, "\(name)") }
    }
}
