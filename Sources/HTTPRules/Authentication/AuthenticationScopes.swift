//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire

/// Remembers where credentials were accepted, so that they go along with later requests before those are challenged (RFC 7617,
/// section 2.2; RFC 7616, section 3.3).
///
/// It knows no credentials: whoever owns it keeps them by ``ID``, and decides for each scheme whether it can go unasked.
package struct AuthenticationScopes: Sendable {
    /// Who is spoken to; credentials of one are never offered to another.
    package struct Place: Sendable, Hashable {
        package let origin: Origin
        package let isProxy: Bool
        /// Whether it is spoken to over TLS; of a proxy, whatever the scheme of what it is asked for.
        package let isSecure: Bool

        package init(_ origin: Origin) {
            self.origin = origin
            isProxy = false
            isSecure = origin.isSecure
        }

        package init(proxy origin: Origin, isSecure: Bool) {
            self.origin = origin
            isProxy = true
            self.isSecure = isSecure
        }
    }

    /// One protection space.
    package struct ID: Sendable, Hashable {
        package let place: Place
        package let scheme: AuthenticationScheme
        package let realm: String?

        package init(place: Place, scheme: AuthenticationScheme, realm: String?) {
            self.place = place
            self.scheme = scheme
            self.realm = realm
        }
    }

    private struct Entry: Sendable {
        let id: ID
        var prefixes: [String]
        var age: UInt64
    }

    /// Of all places together; the one that was added to longest ago makes room.
    package static let maximumSpaces = 256
    /// Of one space.
    static let maximumPrefixes = 32

    private var entries: [Place: [Entry]] = [:]
    private var clock: UInt64 = 0
    package private(set) var count = 0

    package init() {}

    /// A request for the path was accepted, or answered, with credentials of this space.
    ///
    /// With Basic it spans the "paths at or deeper than the depth of the last symbolic element" of it. With Digest what `domain`
    /// says, "the entire server" where that is empty. Differs from RFC 7616, section 3.3: URLs of other servers are passed over,
    /// because credentials never leave their host and port. A proxy is one space as a whole.
    ///
    /// - Returns: the space to keep the credentials by.
    @discardableResult
    package mutating func add(
        _ place: Place, path: String, scheme: AuthenticationScheme, realm: String?, domain: [String] = []
    ) -> ID {
        let id = ID(place: place, scheme: scheme, realm: realm)
        clock += 1
        var list = entries[place, default: []]
        let index = list.firstIndex { $0.id == id } ?? list.endIndex
        if index == list.endIndex {
            list.append(Entry(id: id, prefixes: [], age: clock))
            count += 1
        }
        list[index].age = clock
        for prefix in Self.prefixes(place, path, scheme, domain) {
            if list[index].prefixes.contains(where: { Self.covers($0, prefix) }) { continue }
            list[index].prefixes.removeAll { Self.covers(prefix, $0) }
            list[index].prefixes.append(prefix)
        }
        if list[index].prefixes.count > Self.maximumPrefixes {
            list[index].prefixes.removeFirst(list[index].prefixes.count - Self.maximumPrefixes)
        }
        entries[place] = list
        if count > Self.maximumSpaces { removeOldest() }
        return id
    }

    /// The space that a request belongs to, as far as is known: the one with the longest path.
    package func scope(for place: Place, path: String) -> ID? {
        guard !entries.isEmpty, let list = entries[place] else { return nil }
        let path = place.isProxy ? "/" : Self.withoutQuery(path)
        // Where such a path leads is for the server to say: only what spans all of it does surely.
        let isClear = !Self.hasDotSegments(path)
        var best: (id: ID, length: Int)?
        for entry in list {
            for prefix in entry.prefixes where Self.covers(prefix, path) && (isClear || prefix == "/") {
                let length = prefix.utf8.count
                // Of two of the same path the stronger scheme.
                if let best, (best.length, best.id.scheme) >= (length, entry.id.scheme) { continue }
                best = (entry.id, length)
            }
        }
        return best?.id
    }

    /// Whether a space is still remembered: older ones make room for newer.
    package func contains(_ id: ID) -> Bool { entries[id.place]?.contains { $0.id == id } ?? false }

    /// The credentials were refused, or are gone.
    package mutating func remove(_ id: ID) {
        guard var list = entries[id.place], let index = list.firstIndex(where: { $0.id == id }) else { return }
        list.remove(at: index)
        count -= 1
        entries[id.place] = list.isEmpty ? nil : list
    }

    package mutating func removeAll() {
        entries = [:]
        count = 0
    }

    private mutating func removeOldest() {
        let oldest = entries.values.joined().min { $0.age < $1.age }
        if let oldest { remove(oldest.id) }
    }

    private static func prefixes(
        _ place: Place, _ path: String, _ scheme: AuthenticationScheme, _ domain: [String]
    ) -> [String] {
        guard !place.isProxy else { return ["/"] }
        switch scheme {
        case .digest:
            return domain.isEmpty ? ["/"] : domain.prefix(maximumPrefixes).compactMap { self.path(of: $0, at: place.origin) }
        case .basic, .ntlm, .negotiate:
            let path = withoutQuery(path)
            guard !hasDotSegments(path), let slash = path.lastIndex(of: "/"), path.first == "/" else { return [] }
            return [String(path[...slash])]
        }
    }

    /// The path of a URI in `domain`, or nil where it is of another origin, or relative.
    private static func path(of uri: String, at origin: Origin) -> String? {
        if uri.hasPrefix("/"), !uri.hasPrefix("//") { return hasDotSegments(uri) ? nil : withoutQuery(uri) }
        guard let colon = uri.firstIndex(of: ":"), uri[colon...].hasPrefix("://") else { return nil }
        let rest = uri[colon...].dropFirst(3)
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let path = withoutQuery(String(rest[authority.endIndex...]))
        let host = origin.host.contains(":") ? "[\(origin.host)]" : origin.host
        let names = ["\(host):\(origin.port)"] + (origin.hasDefaultPort ? [host, "\(host):"] : [])
        guard uri[..<colon].lowercased() == origin.scheme, names.contains(authority.lowercased()),
            !hasDotSegments(path)
        else { return nil }
        return path.isEmpty ? "/" : path
    }

    /// Whether a path lies at a prefix or below.
    ///
    /// Differs from RFC 7616, which compares letters: `/a` does not cover `/ab`.
    private static func covers(_ prefix: String, _ path: String) -> Bool {
        let prefix = prefix.utf8
        let path = path.utf8
        guard path.starts(with: prefix) else { return false }
        let slash = UInt8(ascii: "/")
        return path.count == prefix.count || prefix.last == slash || path.dropFirst(prefix.count).first == slash
    }

    private static func withoutQuery(_ path: String) -> String {
        guard let end = path.utf8.firstIndex(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }) else { return path }
        return String(path[..<end])
    }

    /// Also escaped ones, and those behind a backslash.
    private static func hasDotSegments(_ path: String) -> Bool {
        guard path.utf8.contains(where: { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "%") }) else { return false }
        return PercentEncoding.bytes(path.utf8).split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
            .contains { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }
    }
}
