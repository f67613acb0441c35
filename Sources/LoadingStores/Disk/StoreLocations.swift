// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPWire
import LibC

/// The directories of stores, according to the XDG Base Directory Specification, version 0.8.
///
/// Every program has its own directory. A location is nil if the user has no home directory: the stores then work in memory.
package enum StoreLocations {
    private static let project = "urlloading"

    /// The directory for data that should outlast the program: cookies, HSTS.
    package static func dataDirectory(
        program: String,
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> String? {
        base("XDG_DATA_HOME", ".local/share", environment).map { "\($0)/\(project)/\(component(program))" }
    }

    /// The directory for data that can be fetched again.
    package static func cacheDirectory(
        program: String,
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> String? {
        base("XDG_CACHE_HOME", ".cache", environment).map { "\($0)/\(project)/\(component(program))" }
    }

    /// The directory for the daemon's state.
    package static func stateDirectory(environment: [String: String] = ProcessInfo.processInfo.environment) -> String? {
        base("XDG_STATE_HOME", ".local/state", environment).map { "\($0)/\(project)" }
    }

    /// The directory that the programs of a group share.
    ///
    /// No program's directory has this name: component(_:) never produces a plus sign.
    package static func groupDirectory(
        identifier: String,
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> String? {
        base("XDG_DATA_HOME", ".local/share", environment).map { "\($0)/\(project)/+groups/\(component(identifier))" }
    }

    /// "All paths set in these environment variables must be absolute. If an implementation encounters a relative path in any of these
    /// variables it should consider the path invalid and ignore it."
    private static func base(_ variable: String, _ fallback: String, _ environment: [String: String]) -> String? {
        if let path = environment[variable].flatMap(absolute) { return path }
        guard let home = environment["HOME"].flatMap(absolute) ?? homeOfUser() else { return nil }
        return (home == "/" ? "" : home) + "/" + fallback
    }

    private static func absolute(_ path: String) -> String? {
        guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0) else { return nil }
        let end = path.utf8.lastIndex { $0 != UInt8(ascii: "/") }
        return end.map { String(path[...$0]) } ?? "/"
    }

    private static func homeOfUser() -> String? {
        var entry = passwd()
        var result: UnsafeMutablePointer<passwd>?
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16_384) { buffer in
            guard let start = buffer.baseAddress, getpwuid_r(getuid(), &entry, start, buffer.count, &result) == 0, result != nil,
                let home = entry.pw_dir
            else { return nil }
            return absolute(String(cString: home))
        }
    }

    /// Encodes a name as one path component, so that different names have different components.
    ///
    /// A leading dot, and all bytes except letters, digits and `.-_`, are written as % and two hexadecimal digits.
    package static func component(_ name: String) -> String {
        var text = ""
        for (index, byte) in name.utf8.enumerated() {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "_"):
                text.unicodeScalars.append(Unicode.Scalar(byte))
            case UInt8(ascii: ".") where index > 0: text += "."
            default: text += "%" + ASCII.hexadecimal(byte)
            }
        }
        if text.isEmpty { return "%" }
        guard text.utf8.count > 128 else { return text }
        return String(text.prefix(100)) + "%%" + String(Checksum.of(Array(name.utf8)), radix: 16)
    }
}
