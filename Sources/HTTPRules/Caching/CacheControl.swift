// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

/// The cache directives of a request or a response (RFC 9111, section 5.2; RFC 5861; RFC 8246).
///
/// A malformed directive never makes a response more reusable.
///
/// Names are case-insensitive, and arguments are tokens or quoted strings: "recipients ought to accept both forms". Unknown
/// directives are ignored.
package struct CacheControl: Hashable, Sendable {
    /// "If a cache receives a delta-seconds value greater than the greatest integer it can represent … the cache MUST consider
    /// the value to be 2147483648 (2^31)" (section 1.2.2).
    package static let maximumSeconds = 2_147_483_648

    /// Whether there is a `Cache-Control` line.
    package private(set) var isPresent = false
    /// Whether a freshness directive is invalid or contradictory.
    ///
    /// If so, a response counts as stale (section 4.2.1), and a request requires validation.
    package private(set) var hasInvalidFreshness = false

    package private(set) var maxAge: Int?
    /// For shared caches: parsed, but without effect here.
    package private(set) var sharedMaxAge: Int?
    /// For requests; ``maximumSeconds`` if any staleness is acceptable.
    package private(set) var maxStale: Int?
    package private(set) var minFresh: Int?
    package private(set) var staleWhileRevalidate: Int?
    package private(set) var staleIfError: Int?

    /// Unqualified `no-cache`.
    ///
    /// For a request, also `Pragma: no-cache` without a `Cache-Control` field (section 5.4).
    package private(set) var noCache = false
    /// The field names of a qualified `no-cache`.
    package private(set) var noCacheFields: [String] = []
    package private(set) var noStore = false
    package private(set) var noTransform = false
    package private(set) var onlyIfCached = false
    package private(set) var mustRevalidate = false
    package private(set) var mustUnderstand = false
    package private(set) var isPublic = false
    /// For shared caches, with or without field names: without effect here.
    package private(set) var isPrivate = false
    package private(set) var proxyRevalidate = false
    /// RFC 8246.
    package private(set) var immutable = false

    /// Whether a response obtained with a credential may be reused for requests with another credential or without one: true if
    /// the response is `public` and not `private`.
    package var isForEveryCredential: Bool { isPublic && !isPrivate }

    /// Reads the directives of a response, where `Pragma` has no meaning.
    package init(_ headers: HeaderBlock) {
        var next = headers.index(of: .cacheControl)
        while let index = next {
            isPresent = true
            read(headers.bytes, headers.lines[index].value)
            next = headers.index(of: .cacheControl, from: index + 1)
        }
    }

    /// Reads the directives of a request.
    ///
    /// "When the Cache-Control header field is not present in a request, caches MUST consider the no-cache request
    /// pragma-directive as having the same effect as if Cache-Control: no-cache were present" (RFC 7234, section 5.4).
    package init(request headers: HeaderBlock) {
        self.init(headers)
        if !isPresent, headers.hasToken("no-cache", in: .pragma) { noCache = true }
    }

    private mutating func read(_ bytes: [UInt8], _ line: Range<Int>) {
        var reader = CacheDirectiveReader(bytes: bytes, position: line.lowerBound, end: line.upperBound)
        while let (directive, argument) = reader.next() {
            if let directive { take(directive, argument, of: bytes) }
        }
        // An opening quotation mark without a closing quotation mark may hide any directive.
        if reader.isUnterminated { hasInvalidFreshness = true }
    }

    private mutating func take(_ directive: CacheDirective, _ argument: CacheDirectiveReader.Argument, of bytes: [UInt8]) {
        switch directive {
        case .maxAge: takeFreshness(Self.seconds(argument, of: bytes), \.maxAge, min)
        case .minFresh: takeFreshness(Self.seconds(argument, of: bytes), \.minFresh, max)
        case .sharedMaxAge: sharedMaxAge = sharedMaxAge ?? Self.seconds(argument, of: bytes)
        case .maxStale:
            // "If no value is assigned to max-stale, then the client will accept a stale response of any age."
            if case .none = argument {
                narrow(\.maxStale, Self.maximumSeconds)
            } else {
                narrow(\.maxStale, Self.seconds(argument, of: bytes))
            }
        case .staleWhileRevalidate: narrow(\.staleWhileRevalidate, Self.seconds(argument, of: bytes) ?? 0)
        case .staleIfError: narrow(\.staleIfError, Self.seconds(argument, of: bytes) ?? 0)
        case .noCache:
            let fields = Self.fieldNames(argument, of: bytes)
            if let fields { noCacheFields += fields } else { noCache = true }
        case .noStore: noStore = true
        case .noTransform: noTransform = true
        case .onlyIfCached: onlyIfCached = true
        case .mustRevalidate: mustRevalidate = true
        case .mustUnderstand: mustUnderstand = true
        case .isPublic: isPublic = true
        case .isPrivate: isPrivate = true
        case .proxyRevalidate: proxyRevalidate = true
        case .immutable: immutable = true
        }
    }

    /// Sets a freshness directive; if its values differ, the response counts as stale.
    ///
    /// "When there is more than one value present for a given directive …, either the first occurrence should be used or the
    /// response should be considered stale" (section 4.2.1).
    private mutating func takeFreshness(
        _ value: Int?,
        _ directive: WritableKeyPath<CacheControl, Int?>,
        _ stricter: (Int, Int) -> Int
    ) {
        guard let value else {
            hasInvalidFreshness = true
            return
        }
        guard let earlier = self[keyPath: directive] else {
            self[keyPath: directive] = value
            return
        }
        if earlier != value { hasInvalidFreshness = true }
        self[keyPath: directive] = stricter(earlier, value)
    }

    /// Applies a directive that allows stale responses: if it is repeated, the smallest value counts; invalid values are ignored.
    private mutating func narrow(_ directive: WritableKeyPath<CacheControl, Int?>, _ value: Int?) {
        guard let value else { return }
        self[keyPath: directive] = min(self[keyPath: directive] ?? value, value)
    }

    /// `delta-seconds` (section 1.2.2), or nil if the argument contains anything but digits.
    private static func seconds(_ argument: CacheDirectiveReader.Argument, of bytes: [UInt8]) -> Int? {
        switch argument {
        case .token(let range): seconds(bytes[range])
        case .quoted(let text): seconds(text)
        case .none, .malformed: nil
        }
    }

    static func seconds(_ text: some Collection<UInt8>) -> Int? {
        ASCII.number(text).map { min(maximumSeconds, Int($0)) }
    }

    /// The field names in the argument of `no-cache`.
    ///
    /// Nil if there is no valid list of names; the directive then applies to the whole response.
    private static func fieldNames(_ argument: CacheDirectiveReader.Argument, of bytes: [UInt8]) -> [String]? {
        let text: ArraySlice<UInt8>
        switch argument {
        case .token(let range): text = bytes[range]
        case .quoted(let quoted): text = quoted[...]
        case .none, .malformed: return nil
        }
        let names = text.split(separator: UInt8(ascii: ",")).map { String(decoding: ASCII.trimmed($0), as: UTF8.self) }
        let listed = names.filter { !$0.isEmpty }
        return listed.isEmpty || !listed.allSatisfy(ASCII.isToken) ? nil : listed
    }
}
