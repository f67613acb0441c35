// SPDX-License-Identifier: Apache-2.0

import HTTPRules

/// Cookies as a value that processes share. Session cookies stay in this process.
extension CookieJar: SharedContent {
    static var title: String { "cookies" }
    static var envelope: StoreEnvelope { CookieFile.envelope }

    func encoded(now: Double) -> [UInt8] {
        CookieFile.encode(all, now: now)
    }

    static func decoded(_ file: [UInt8], from start: Int) -> CookieJar? {
        CookieFile.decode(file, from: start).map { CookieJar($0) }
    }

    /// A cookie on disk replaces a session cookie of the same name: if the session cookie had been set later, it would have
    /// removed the one on disk.
    static func merged(disk: CookieJar, memory: CookieJar, pending: [Change]) -> CookieJar {
        var merged = disk
        guard memory.count > 0 || !pending.isEmpty else { return merged }
        let onDisk = cookiesByKey(disk)
        var changes: [Change] = []
        for cookie in memory.all {
            if var same = onDisk[cookie.key] {
                guard cookie.lastAccess > same.lastAccess else { continue }
                same.lastAccess = cookie.lastAccess
                changes.append(.set(same))
            } else if cookie.expires == nil {
                changes.append(.set(cookie))
            }
        }
        merged.apply(changes + pending)
        return merged
    }

    static func key(of change: Change) -> Cookie.Key {
        switch change {
        case .set(let cookie): cookie.key
        case .removed(let key), .absent(let key): key
        }
    }

    static func isVisible(_ change: Change) -> Bool { if case .absent = change { false } else { true } }

    func isSame(as other: CookieJar) -> Bool {
        guard count == other.count else { return false }
        let others = Self.cookiesByKey(other)
        return all.allSatisfy { cookie in
            guard var same = others[cookie.key] else { return false }
            same.lastAccess = cookie.lastAccess
            return same == cookie
        }
    }

    private static func cookiesByKey(_ jar: CookieJar) -> [Cookie.Key: Cookie] {
        Dictionary(jar.all.map { ($0.key, $0) }) { first, _ in first }
    }
}
