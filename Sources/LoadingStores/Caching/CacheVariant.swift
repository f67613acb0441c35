//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPRules
import HTTPWire

/// Tells which of a key's entries a response takes the place of (RFC 9111, section 4.1).
enum CacheVariant {
    /// Whether there is a request that would select both.
    ///
    /// Responses that were obtained with different credentials stand side by side; one that is for everyone takes the place of all.
    static func isSame(_ old: StoredResponse, _ new: StoredResponse) -> Bool {
        guard hasSameFields(old, new), old.credential == new.credential || old.credential == nil || new.credential == nil else {
            return false
        }
        // One with `*` is never used (section 4.1), so that one place is enough for all of them.
        return CacheKey.matchesVary(old, requestHeaders: new.varyFields)
            || !CacheKey.matchesVary(old, requestHeaders: old.varyFields)
    }

    /// Whether both are selected by the same fields.
    ///
    /// Where not, the server has changed its mind, and what it said before would hide what it says now: all variants that are
    /// kept of a key are of one mind, so that at most one matches a request.
    static func hasSameFields(_ old: StoredResponse, _ new: StoredResponse) -> Bool {
        names(old.headers) == names(new.headers)
    }

    private static func names(_ headers: HeaderBlock) -> [String] {
        guard headers.contains(.vary) else { return [] }
        let names = headers.all("Vary").flatMap { $0.split(separator: ",") }.map {
            $0.lowercased().filter { $0 != " " && $0 != "\t" }
        }
        return Set(names).sorted()
    }

    /// Whether an entry still is what a new head was made for: another process may have stored another body meanwhile.
    static func hasSameBody(_ old: StoredResponse, _ new: StoredResponse) -> Bool {
        guard old.bodyLength == new.bodyLength, old.storedRange == new.storedRange else { return false }
        for name in ["ETag", "Last-Modified"] {
            if let before = old.headers.first(name), let after = new.headers.first(name), before != after { return false }
        }
        return true
    }
}
