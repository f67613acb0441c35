// SPDX-License-Identifier: Apache-2.0

import HTTPRules

/// Encodes records without validation, as an attacker could write them.
enum CookieFileBytes {
    static func record(_ cookie: Cookie) -> [UInt8] {
        var bytes: [UInt8] = [0, 0]
        for time in [cookie.expires ?? 0, cookie.creation, cookie.lastAccess] {
            withUnsafeBytes(of: time.bitPattern.littleEndian) { bytes += $0 }
        }
        for text in [cookie.name, cookie.value, cookie.domain, cookie.path] {
            withUnsafeBytes(of: UInt32(text.utf8.count).littleEndian) { bytes += $0 }
            bytes += text.utf8
        }
        // The record ends with: no partition, version 0, no comment, no comment URL, no ports.
        return bytes + [0] + [UInt8](repeating: 0, count: 8) + [0, 0, 0, 0]
    }
}
