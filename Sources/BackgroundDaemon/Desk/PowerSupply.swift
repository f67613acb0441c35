// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import SystemThreads

/// Whether the machine is on external power, according to sysfs (Documentation/ABI/testing/sysfs-class-power).
struct PowerSupply: Sendable {
    let root: String

    /// True if the machine has no battery, or if a supply is online.
    var isExternal: Bool {
        let folder = root + "/class/power_supply"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        var hasBattery = false
        for name in names {
            switch word(folder + "/" + name + "/type") {
            case "Battery":
                // The battery of a mouse or keyboard says nothing about the machine.
                if word(folder + "/" + name + "/scope") == "Device" { continue }
                hasBattery = true
            case "Mains", "USB", "UPS", "Wireless": if word(folder + "/" + name + "/online") == "1" { return true }
            default: break
            }
        }
        return !hasBattery
    }

    private func word(_ path: String) -> String? {
        (try? String(contentsOfFile: path, encoding: .utf8))?.filter { !$0.isWhitespace }
    }
}
