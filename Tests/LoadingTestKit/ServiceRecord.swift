// SPDX-License-Identifier: Apache-2.0

/// Writes records for a ``ScriptedNameServer``.
package enum ServiceRecord {
    /// The parameter that says that a server speaks these protocols.
    package static func alpn(_ names: String...) -> (key: UInt16, value: [UInt8]) {
        (1, names.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) })
    }

    /// Returns an HTTPS record (RFC 9460); the priority 0 makes it an alias.
    ///
    /// The owner is the name that was asked for, unless another one is given.
    package static func https(
        _ priority: UInt16, _ target: String = "", _ parameters: [(key: UInt16, value: [UInt8])] = [], of owner: String? = nil,
        seconds: UInt32 = 300
    ) -> [UInt8] {
        let values = parameters.flatMap { bytes($0.key) + bytes(UInt16($0.value.count)) + $0.value }
        return record(65, bytes(priority) + name(target) + values, owner, seconds)
    }

    /// Returns a record that makes the owner an alias of a name (CNAME).
    package static func alias(_ target: String, of owner: String? = nil, seconds: UInt32 = 300) -> [UInt8] {
        record(5, name(target), owner, seconds)
    }

    private static func record(_ type: UInt16, _ data: [UInt8], _ owner: String?, _ seconds: UInt32) -> [UInt8] {
        (owner.map(name) ?? [0xC0, 12]) + bytes(type) + bytes(1) + bytes(UInt16(seconds >> 16))
            + bytes(UInt16(truncatingIfNeeded: seconds)) + bytes(UInt16(data.count)) + data
    }

    private static func name(_ text: String) -> [UInt8] {
        text.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
    }

    private static func bytes(_ number: UInt16) -> [UInt8] { [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)] }
}
