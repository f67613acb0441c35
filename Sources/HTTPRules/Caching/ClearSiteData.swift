//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPWire

/// Reads `Clear-Site-Data` (W3C, section 3): what a site asks to be forgotten of it.
///
/// Whether it counts is for the caller: over verified TLS only.
package enum ClearSiteData {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case cache, cookies, storage
    }

    /// The kinds that are named, as quoted strings; `"*"` names all, and what is unknown nothing.
    package static func parse(_ headers: HeaderBlock) -> Set<Kind> {
        var kinds: Set<Kind> = []
        for line in headers.all("Clear-Site-Data") {
            for member in line.utf8.split(separator: UInt8(ascii: ",")) {
                let text = ASCII.trimmed(Array(member)[...])
                guard text.count > 2, text.first == UInt8(ascii: "\""), text.last == UInt8(ascii: "\"") else { continue }
                let name = String(decoding: text.dropFirst().dropLast(), as: UTF8.self)
                if name == "*" { return Set(Kind.allCases) }
                if let kind = Kind(rawValue: name) { kinds.insert(kind) }
            }
        }
        return kinds
    }
}
