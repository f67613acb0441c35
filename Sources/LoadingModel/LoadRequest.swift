// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import HTTPWire

/// A request in the engine's terms; `URLRequest` is a façade over it.
///
/// The value is one pointer wide, because every part of a load keeps a copy.
package struct LoadRequest: Sendable {
    /// As in `NSURLRequest.CachePolicy`, with Apple's raw values.
    package enum CachePolicy: UInt, Sendable {
        case useProtocolCachePolicy = 0
        case reloadIgnoringLocalCacheData = 1
        case returnCacheDataElseLoad = 2
        case returnCacheDataDontLoad = 3
        case reloadIgnoringLocalAndRemoteCacheData = 4
        case reloadRevalidatingCacheData = 5
    }

    private struct Facts {
        var url: URL?
        var mainDocumentURL: URL?
        var method = "GET"
        var headers = HeaderBlock()
        var body = RequestBody.none
        var timeout: Double?
        var cachePolicy = CachePolicy.useProtocolCachePolicy
        var handlesCookies = true
        var assumesHTTP3 = false
        var cookiePartition: String?
        var needs = ConnectionNeeds.none
        var sentFields: HeaderBlock?
    }

    /// Sendable because it is copied on write: a box changes only while a single value refers to it, and one thread owns that
    /// value.
    private final class Box: @unchecked Sendable {
        // Unchecked for the same reason: no other thread reads the facts during a change.
        @exclusivity(unchecked) var facts: Facts
        init(_ facts: Facts) { self.facts = facts }
    }

    private var box: Box

    package init(url: URL?, timeout: Double? = nil, cachePolicy: CachePolicy = .useProtocolCachePolicy) {
        box = Box(Facts(url: url, timeout: timeout, cachePolicy: cachePolicy))
    }

    private var facts: Facts {
        _read { yield box.facts }
        _modify {
            if !isKnownUniquelyReferenced(&box) { box = Box(box.facts) }
            yield &box.facts
        }
    }

    package var url: URL? {
        _read { yield box.facts.url }
        set {
            facts.url = newValue
            if box.facts.sentFields != nil { facts.sentFields = nil }
        }
    }

    package var mainDocumentURL: URL? {
        _read { yield box.facts.mainDocumentURL }
        set { facts.mainDocumentURL = newValue }
    }

    package var method: String {
        _read { yield box.facts.method }
        set { facts.method = newValue }
    }

    /// The caller's own fields; the engine adds the others when it composes the message.
    package var headers: HeaderBlock {
        _read { yield box.facts.headers }
        set {
            facts.headers = newValue
            if box.facts.sentFields != nil { facts.sentFields = nil }
        }
    }

    /// Whether the caller set a field of that name; cheaper than a search in ``headers``.
    package func hasField(_ name: FieldName) -> Bool { box.facts.headers.contains(name) }
    /// Whether the caller set any field.
    package var hasFields: Bool { !box.facts.headers.isEmpty }

    package var body: RequestBody {
        _read { yield box.facts.body }
        set { facts.body = newValue }
    }

    /// Seconds without progress after which the load fails; nil if the session's timeout applies.
    package var timeout: Double? {
        _read { yield box.facts.timeout }
        set { facts.timeout = newValue }
    }

    package var cachePolicy: CachePolicy {
        _read { yield box.facts.cachePolicy }
        set { facts.cachePolicy = newValue }
    }

    package var handlesCookies: Bool {
        _read { yield box.facts.handlesCookies }
        set { facts.handlesCookies = newValue }
    }

    /// Whether the server is assumed to speak HTTP/3 although it has not announced that.
    package var assumesHTTP3: Bool {
        _read { yield box.facts.assumesHTTP3 }
        set { facts.assumesHTTP3 = newValue }
    }

    /// The partition of the top-level site (`Partitioned` cookies).
    package var cookiePartition: String? {
        _read { yield box.facts.cookiePartition }
        set { facts.cookiePartition = newValue }
    }

    package var needs: ConnectionNeeds {
        _read { yield box.facts.needs }
        set { facts.needs = newValue }
    }

    /// All fields that the request is or was sent with, for the app's own cache; the caller's own are ``headers``.
    ///
    /// Reset when ``headers`` or ``url`` change.
    package var sentFields: HeaderBlock? {
        _read { yield box.facts.sentFields }
        set { facts.sentFields = newValue }
    }
}

/// Where the bytes of a request's body come from.
package enum RequestBody: Sendable {
    case none
    case data(Data)
    /// A regular file, read while the body is sent.
    case file(path: String)
    /// The app's stream, which can be read once; to send the body again, the engine asks the app for a new stream.
    case stream(any BodyStream)
    /// The engine asks the app for the stream (`needNewBodyStream`) before it sends the first byte.
    case streamOnDemand
}

/// A body that the app produces while it is sent; the façade wraps an `InputStream`.
package protocol BodyStream: AnyObject, Sendable {
    /// Reads up to `count` bytes outside the event loop, and replies once, from any thread, with the bytes, with empty data at the
    /// end, or with the failure.
    func read(upTo count: Int, reply: @escaping @Sendable (Result<Data, any Error>) -> Void)
    func close()
}
