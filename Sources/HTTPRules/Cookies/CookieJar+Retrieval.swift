// SPDX-License-Identifier: Apache-2.0

import HTTPWire

extension CookieJar {
    /// Returns the cookies for a request: the longest path first and, for paths of the same length, the oldest cookie first (RFC
    /// 6265bis, section 5.8.3).
    ///
    /// Sets the last access time of these cookies to `now`.
    package mutating func cookies(for request: CookieRequest, now: Double) -> [Cookie] {
        picks(for: request, now: now).map { entry in entry.cookie }
    }

    /// Returns the value of the `Cookie` field, or nil if there are no cookies for the request.
    package mutating func header(for request: CookieRequest, now: Double) -> String? {
        let picks = picks(for: request, now: now)
        guard let first = picks.first else { return nil }
        if picks.count == 1 { return first.record.pair }
        var header = ""
        header.reserveCapacity(picks.reduce(0) { $0 + $1.record.pair.utf8.count + 2 })
        header += first.record.pair
        for pick in picks.dropFirst() {
            header += "; "
            header += pick.record.pair
        }
        return header
    }

    private mutating func picks(for request: CookieRequest, now: Double) -> [Entry] {
        guard count > 0 else { return [] }
        var picks: [Entry] = []
        var usedGroupCount = 0
        // Visits the host itself, then its parent domains. An address has no parent domains.
        var domain = request.host[...]
        while true {
            if let group = location(of: domain) {
                let before = picks.count
                pick(from: group, isHost: domain.startIndex == request.host.startIndex, request, now, into: &picks)
                if picks.count > before { usedGroupCount += 1 }
            }
            guard let dot = domain.utf8.firstIndex(of: UInt8(ascii: ".")) else { break }
            domain = domain[domain.utf8.index(after: dot)...]
        }
        if usedGroupCount > 1 { picks.sort { $0.precedes($1) } }
        return picks
    }

    private mutating func pick(
        from group: Int,
        isHost: Bool,
        _ request: CookieRequest,
        _ now: Double,
        into picks: inout [Entry]
    ) {
        guard isHost || !HostName.isAddress(request.host) else { return }
        for position in groups[group].entries.indices {
            let entry = groups[group].entries[position]
            guard isHost || !entry.record.cookie.isHostOnly,
                entry.isSent(with: request, treatsDefaultAsLax: treatsDefaultAsLax, now: now)
            else { continue }
            groups[group].entries[position].lastAccess = now
            picks.append(groups[group].entries[position])
        }
    }
}
