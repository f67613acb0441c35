//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import LoadingModel

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// Tells what an interface is, from the system's files.
struct InterfaceKinds {
    /// Where sysfs is; another place in tests.
    let root: String

    func kind(of name: String) -> NetworkPath.Interface.Kind {
        // The kernel allows no slash and no lone dots in names; messages are taken for nothing better than what they are.
        guard !name.isEmpty, !name.contains("/"), name != ".", name != ".." else { return .other }
        let folder = "\(root)/class/net/\(name)"
        if text(folder + "/type") == "772" { return .loopback }
        let lines = (text(folder + "/uevent") ?? "").split(separator: "\n")
        switch lines.first(where: { $0.hasPrefix("DEVTYPE=") })?.dropFirst(8) {
        case "wlan": return .wifi
        case "wwan": return .cellular
        default: break
        }
        // What older drivers of wireless devices have; then hardware that is neither, such as Ethernet.
        if exists(folder + "/wireless") || exists(folder + "/phy80211") { return .wifi }
        return exists(folder + "/device") ? .wired : .other
    }

    private func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// The first kilobytes of a file, without the end of its last line.
    private func text(_ path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = read(file, &bytes, bytes.count)
        guard count >= 0 else { return nil }
        return String(decoding: bytes.prefix(count).reversed().drop { $0 == 0x0A }.reversed(), as: UTF8.self)
    }
}
