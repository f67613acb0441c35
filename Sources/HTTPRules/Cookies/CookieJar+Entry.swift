//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extension CookieJar {
    /// What never changes of a cookie kept: one reference, so that moving cookies about and looking at them costs little.
    final class Record: Sendable {
        /// Its time of last access is that of when it was kept.
        let cookie: Cookie
        let pathLength: Int
        /// What is sent (section 5.8.3, step 4): the name and "=" unless the name is empty, then the value.
        let pair: String

        init(_ cookie: Cookie) {
            self.cookie = cookie
            pathLength = cookie.path.utf8.count
            pair = cookie.name.isEmpty ? cookie.value : cookie.name + "=" + cookie.value
        }
    }

    /// A cookie in its drawer.
    struct Entry: Sendable {
        let record: Record
        /// How many were kept before it: the order of cookies created in the same instant.
        let sequence: Int
        /// For ever, of a session cookie.
        let expires: Double
        var lastAccess: Double

        init(_ cookie: Cookie, sequence: Int) {
            record = Record(cookie)
            self.sequence = sequence
            expires = cookie.expires ?? .infinity
            lastAccess = cookie.lastAccess
        }

        var cookie: Cookie {
            var cookie = record.cookie
            cookie.lastAccess = lastAccess
            return cookie
        }

        /// "Cookies with longer paths are listed before cookies with shorter paths", then those created earlier (section 5.8.3).
        func precedes(_ other: Entry) -> Bool {
            if record.pathLength != other.record.pathLength { return record.pathLength > other.record.pathLength }
            let (creation, otherCreation) = (record.cookie.creation, other.record.cookie.creation)
            return creation != otherCreation ? creation < otherCreation : sequence < other.sequence
        }

        func isStaler(than other: Entry) -> Bool {
            lastAccess != other.lastAccess ? lastAccess < other.lastAccess : sequence < other.sequence
        }

        func hasKey(_ key: Cookie.Key) -> Bool {
            record.cookie.isHostOnly == key.isHostOnly && Cookie.areSame(record.cookie.name, key.name)
                && Cookie.areSame(record.cookie.path, key.path) && Cookie.areSame(record.cookie.partition, key.partition)
        }

        /// Whether the cookie goes with a request to a host that it is for (section 5.8.3, step 1).
        func goes(with request: CookieRequest, treatsDefaultAsLax: Bool, now: Double) -> Bool {
            (request.isSecure || !record.cookie.isSecure) && expires > now
                && (record.pathLength == 1 || Cookie.pathMatches(request.path, record.cookie.path))
                && request.maySend(record.cookie.sameSite, treatsDefaultAsLax: treatsDefaultAsLax)
                && (record.cookie.partition == nil || Cookie.areSame(record.cookie.partition, request.partition))
                && (record.cookie.ports.isEmpty || record.cookie.ports.contains(request.port))
        }
    }
}
