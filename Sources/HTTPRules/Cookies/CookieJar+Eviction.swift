//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extension CookieJar {
    /// "Removes excess cookies" (RFC 6265bis, section 5.7): expired ones, then those of a domain that has too many, then any; the
    /// least recently used of a kind first.
    mutating func removeExcess(ofDomain domain: String, now: Double) -> [Change] {
        guard let drawer = place(of: domain[...]),
            drawers[drawer].entries.count > Self.maximumPerDomain || count > Self.maximumCount
        else { return [] }
        var changes = removeExpired(now: now)
        while drawers[drawer].entries.count > Self.maximumPerDomain { changes.append(evictOne(of: drawer)) }
        return changes + enforceTotal()
    }

    /// Of a domain with too many cookies: one without `Secure` before one with it.
    mutating func evictOne(of drawer: Int) -> Change {
        let entries = drawers[drawer].entries
        let position = entries.indices.min { one, other in
            let (isSecure, isOtherSecure) = (entries[one].record.cookie.isSecure, entries[other].record.cookie.isSecure)
            return isSecure != isOtherSecure ? isOtherSecure : entries[one].isStaler(than: entries[other])
        }
        return remove(at: position ?? 0, of: drawer)
    }

    /// Drops the least recently used of all, until no more than ``maximumCount`` are left.
    @discardableResult
    mutating func enforceTotal() -> [Change] {
        let excess = count - Self.maximumCount
        // One too many is the rule, after a cookie was kept.
        if excess <= 1 { return excess < 1 ? [] : stalest().map { [remove(at: $0.position, of: $0.drawer)] } ?? [] }
        return drawers.flatMap(\.entries).sorted { $0.isStaler(than: $1) }.prefix(excess).flatMap { remove($0.record.cookie.key) }
    }

    private func stalest() -> (drawer: Int, position: Int)? {
        var found: (drawer: Int, position: Int, entry: Entry)?
        for drawer in drawers.indices {
            for position in drawers[drawer].entries.indices {
                let entry = drawers[drawer].entries[position]
                if found.map({ entry.isStaler(than: $0.entry) }) ?? true { found = (drawer, position, entry) }
            }
        }
        return found.map { ($0.drawer, $0.position) }
    }
}
