// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire

/// Decides which entries of a key a response replaces (RFC 9111, section 4.1).
enum CacheVariant {
    /// Whether one request could select both responses.
    ///
    /// Responses that were obtained with different credentials coexist; a response that is not bound to a credential replaces
    /// them all.
    static func isSame(_ old: StoredResponse, _ new: StoredResponse) -> Bool {
        guard hasSameFields(old, new), old.credential == new.credential || old.credential == nil || new.credential == nil else {
            return false
        }
        // A response with `Vary: *` is never selected (section 4.1), so one slot is enough for all of them.
        return CacheKey.matchesVary(old, requestHeaders: new.varyFields)
            || !CacheKey.matchesVary(old, requestHeaders: old.varyFields)
    }

    /// Whether both responses list the same field names in `Vary`.
    ///
    /// If not, the server has changed its `Vary`, and the new response replaces the old entries, which could otherwise hide it.
    /// All stored variants of a key therefore have the same `Vary`, and at most one matches a request.
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

    /// Whether an entry still has the body that a new head belongs to: another process may have stored another body meanwhile.
    static func hasSameBody(_ old: StoredResponse, _ new: StoredResponse) -> Bool {
        guard old.bodyLength == new.bodyLength, old.storedRange == new.storedRange else { return false }
        for name in ["ETag", "Last-Modified"] {
            if let before = old.headers.first(name), let after = new.headers.first(name), before != after { return false }
        }
        return true
    }
}
