// SPDX-License-Identifier: Apache-2.0

import HTTPRules

/// Storage and retrieval of RFC 6265bis, sections 5.7 and 5.8.3, as a plain list: slow, and easy to verify.
struct NaiveCookieJar {
    private(set) var cookies: [Cookie] = []

    mutating func store(_ field: String, from request: CookieRequest, now: Double) {
        guard let received = SetCookie(field), var cookie = Cookie(received, from: request, now: now) else { return }
        let hidden = cookies.first { !$0.isExpired(now) && isHidden($0, by: cookie) }
        if !request.isSecure && !cookie.isSecure && hidden != nil { return }
        if let old = cookies.firstIndex(where: { $0.key == cookie.key }) {
            if !cookies[old].isExpired(now) { cookie.creation = cookies[old].creation }
            // Cookies created in the same instant are ordered by arrival.
            cookies[old] = cookie
        } else {
            cookies.append(cookie)
        }
        if cookie.isExpired(now) { cookies.removeAll { $0.key == cookie.key } }
        removeExcess(now)
    }

    private func isHidden(_ secure: Cookie, by cookie: Cookie) -> Bool {
        let one = secure.domain == cookie.domain || secure.domain.hasSuffix("." + cookie.domain)
        let other = cookie.domain.hasSuffix("." + secure.domain)
        return secure.isSecure && secure.name == cookie.name && (one || other) && matches(cookie.path, secure.path)
    }

    private func matches(_ path: String, _ cookiePath: String) -> Bool {
        path == cookiePath || path.hasPrefix(cookiePath.hasSuffix("/") ? cookiePath : cookiePath + "/")
    }

    private mutating func removeExcess(_ now: Double) {
        for domain in Set(cookies.map(\.domain)) {
            guard cookies.count(where: { $0.domain == domain }) > CookieJar.maximumPerDomain else { continue }
            cookies.removeAll { $0.isExpired(now) }
            while cookies.count(where: { $0.domain == domain }) > CookieJar.maximumPerDomain {
                let candidates = cookies.indices.filter { cookies[$0].domain == domain }
                let insecure = candidates.filter { !cookies[$0].isSecure }
                let victims = insecure.isEmpty ? candidates : insecure
                guard let stalest = victims.min(by: { cookies[$0].lastAccess < cookies[$1].lastAccess }) else { return }
                cookies.remove(at: stalest)
            }
        }
    }

    mutating func header(for request: CookieRequest, now: Double) -> String? {
        var sent: [Int] = []
        for (index, cookie) in cookies.enumerated() {
            let isForHost = request.host == cookie.domain || !cookie.isHostOnly && request.host.hasSuffix("." + cookie.domain)
            guard isForHost, matches(request.path, cookie.path), request.isSecure || !cookie.isSecure, !cookie.isExpired(now),
                cookie.partition == nil || cookie.partition == request.partition
            else { continue }
            sent.append(index)
        }
        for index in sent { cookies[index].lastAccess = now }
        let ordered = sent.map { cookies[$0] }.enumerated().sorted { one, other in
            if one.element.path.utf8.count != other.element.path.utf8.count {
                return one.element.path.utf8.count > other.element.path.utf8.count
            }
            if one.element.creation != other.element.creation { return one.element.creation < other.element.creation }
            return one.offset < other.offset
        }
        guard !ordered.isEmpty else { return nil }
        return ordered.map { $0.element.name.isEmpty ? $0.element.value : $0.element.name + "=" + $0.element.value }
            .joined(separator: "; ")
    }
}
