// SPDX-License-Identifier: Apache-2.0

import LibC
import LoadingModel

/// Determines the kind of an interface from sysfs.
struct InterfaceKinds {
    /// The mount point of sysfs; tests use another directory.
    let root: String

    func kind(of name: String) -> NetworkPath.Interface.Kind {
        // The kernel allows no name that contains a slash, or that is "." or "..", but this name comes from a message and is not
        // trusted.
        guard !name.isEmpty, !name.contains("/"), name != ".", name != ".." else { return .other }
        let folder = "\(root)/class/net/\(name)"
        if text(folder + "/type") == "772" { return .loopback }
        let lines = (text(folder + "/uevent") ?? "").split(separator: "\n")
        switch lines.first(where: { $0.hasPrefix("DEVTYPE=") })?.dropFirst(8) {
        case "wlan": return .wifi
        case "wwan": return .cellular
        default: break
        }
        // Older wireless drivers have these entries; any other interface with a device is hardware such as Ethernet.
        if exists(folder + "/wireless") || exists(folder + "/phy80211") { return .wifi }
        return exists(folder + "/device") ? .wired : .other
    }

    private func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Returns the first 4 KiB of a file, without trailing newlines.
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
