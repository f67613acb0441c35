// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// The protection spaces in which credentials were accepted, so that later requests can carry them preemptively (RFC 7617, section
/// 2.2; RFC 7616, section 3.3).
///
/// This type does not store credentials: its owner stores the credentials by ``ID`` and decides for each scheme whether credentials
/// may be sent preemptively.
package struct AuthenticationScopes: Sendable {
    /// A server or proxy.
    ///
    /// Credentials for one peer are never sent to another.
    package struct Peer: Sendable, Hashable {
        package let origin: Origin
        package let isProxy: Bool
        /// Whether the connection to the peer uses TLS.
        ///
        /// For a proxy, this is independent of the scheme of the request's URL.
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

    /// A protection space.
    package struct ID: Sendable, Hashable {
        package let place: Peer
        package let scheme: AuthenticationScheme
        package let realm: String?

        package init(place: Peer, scheme: AuthenticationScheme, realm: String?) {
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

    /// The maximum number of spaces in total.
    ///
    /// When the number is exceeded, the least recently updated space is removed.
    package static let maximumSpaces = 256
    /// The maximum number of prefixes per space.
    static let maximumPrefixes = 32

    private var entries: [Peer: [Entry]] = [:]
    private var clock: UInt64 = 0
    package private(set) var count = 0

    package init() {}

    /// Adds a space whose credentials the server accepted in a request for this path.
    ///
    /// With Digest, the space covers the URIs in `domain`, or "the entire server" if `domain` is empty. With other schemes, the space
    /// covers the "paths at or deeper than the depth of the last symbolic element" of the path. A space of a proxy covers all paths.
    /// Differs from RFC 7616, section 3.3: URIs of other servers are ignored, because credentials are never sent to another host or
    /// port.
    ///
    /// - Returns: The ID under which to store the credentials.
    @discardableResult
    package mutating func add(
        _ place: Peer, path: String, scheme: AuthenticationScheme, realm: String?, domain: [String] = []
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

    /// Returns the known space that a request belongs to: the space with the longest matching prefix.
    package func scope(for place: Peer, path: String) -> ID? {
        guard !entries.isEmpty, let list = entries[place] else { return nil }
        let path = place.isProxy ? "/" : Self.withoutQuery(path)
        // Only the server knows what a path with dot segments resolves to, so only a space that covers the whole server is certain
        // to contain the path.
        let isClear = !Self.hasDotSegments(path)
        var best: (id: ID, length: Int)?
        for entry in list {
            for prefix in entry.prefixes where Self.covers(prefix, path) && (isClear || prefix == "/") {
                let length = prefix.utf8.count
                // For the same path, prefer the stronger scheme.
                if let best, (best.length, best.id.scheme) >= (length, entry.id.scheme) { continue }
                best = (entry.id, length)
            }
        }
        return best?.id
    }

    /// Whether a space is still known; the oldest space is removed when the limit is exceeded.
    package func contains(_ id: ID) -> Bool { entries[id.place]?.contains { $0.id == id } ?? false }

    /// Removes a space whose credentials were rejected or are no longer available.
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
        _ place: Peer, _ path: String, _ scheme: AuthenticationScheme, _ domain: [String]
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

    /// Returns the path of a URI in `domain`, or nil if the URI is relative or has another origin.
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

    /// Whether a path equals a prefix or is below it.
    ///
    /// Differs from RFC 7616, which compares characters: `/a` does not cover `/ab`.
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

    /// Whether a path has dot segments, including percent-encoded segments and segments separated by a backslash.
    private static func hasDotSegments(_ path: String) -> Bool {
        guard path.utf8.contains(where: { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "%") }) else { return false }
        return PercentEncoding.bytes(path.utf8).split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
            .contains { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }
    }
}
