//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import HTTPWire

/// Which hosts are reached without a proxy: `ExceptionsList` and `ExcludeSimpleHostnames` of `connectionProxyDictionary`.
package enum ProxyExceptions {
    /// Whether a host is among the exceptions.
    ///
    /// - Parameters:
    ///   - host: In lower case.
    ///   - exceptions: Names and addresses; `*` stands for any characters; a name that begins with a dot is that of a whole domain.
    ///   - excludesSimpleHostnames: Whether names without a dot are exceptions.
    /// - Returns: Whether it is.
    package static func contain(_ host: String, exceptions: [String], excludesSimpleHostnames: Bool) -> Bool {
        if excludesSimpleHostnames, !host.contains("."), !host.contains(":") { return true }
        return exceptions.contains { pattern in
            let pattern = pattern.lowercased()
            if pattern.hasPrefix(".") { return host.hasSuffix(pattern) || host == pattern.dropFirst() }
            return matches(Array(host.utf8)[...], Array(pattern.utf8)[...])
        }
    }

    /// Without recursion: a star takes as little as it can, and the last one takes more where that fails.
    private static func matches(_ text: ArraySlice<UInt8>, _ pattern: ArraySlice<UInt8>) -> Bool {
        var (at, want) = (text.startIndex, pattern.startIndex)
        var resume: (at: Int, want: Int)?
        while at < text.endIndex {
            if want < pattern.endIndex, pattern[want] == UInt8(ascii: "*") {
                resume = (at, want + 1)
                want += 1
            } else if want < pattern.endIndex, pattern[want] == text[at] {
                (at, want) = (at + 1, want + 1)
            } else if let (start, after) = resume {
                resume = (start + 1, after)
                (at, want) = (start + 1, after)
            } else {
                return false
            }
        }
        return pattern[want...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
