//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials
package import HTTPWire

/// What to ask for: everything a request says, in the terms of the engine. `URLRequest` is a façade over one of these.
///
/// One pointer wide, since everybody who has to do with a load keeps one.
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

    /// What is said; sendable because it is copied on write: it changes only while one value, in one thread's hands, refers to it.
    private final class Facts: @unchecked Sendable {
        var url: URL?
        var mainDocumentURL: URL?
        var method = "GET"
        var headers = HeaderBlock()
        var body = RequestBody.none
        var timeout: Double?
        var cachePolicy = CachePolicy.useProtocolCachePolicy
        var handlesCookies = true
        var cookiePartition: String?

        init(url: URL?) { self.url = url }

        init(copying other: Facts) {
            url = other.url
            mainDocumentURL = other.mainDocumentURL
            method = other.method
            headers = other.headers
            body = other.body
            timeout = other.timeout
            cachePolicy = other.cachePolicy
            handlesCookies = other.handlesCookies
            cookiePartition = other.cookiePartition
        }
    }

    private var facts: Facts

    package init(url: URL?) { facts = Facts(url: url) }

    private mutating func unique() -> Facts {
        if !isKnownUniquelyReferenced(&facts) { facts = Facts(copying: facts) }
        return facts
    }

    package var url: URL? {
        get { facts.url }
        set { unique().url = newValue }
    }

    package var mainDocumentURL: URL? {
        get { facts.mainDocumentURL }
        set { unique().mainDocumentURL = newValue }
    }

    package var method: String {
        get { facts.method }
        set { unique().method = newValue }
    }

    /// The caller's own fields; the engine adds the rest when it composes the message.
    package var headers: HeaderBlock {
        get { facts.headers }
        set { unique().headers = newValue }
    }

    package var body: RequestBody {
        get { facts.body }
        set { unique().body = newValue }
    }

    /// Seconds without progress after which the load fails; nil where the caller set none and the session's applies.
    package var timeout: Double? {
        get { facts.timeout }
        set { unique().timeout = newValue }
    }

    package var cachePolicy: CachePolicy {
        get { facts.cachePolicy }
        set { unique().cachePolicy = newValue }
    }

    package var handlesCookies: Bool {
        get { facts.handlesCookies }
        set { unique().handlesCookies = newValue }
    }

    /// Names the partition of the site that the request is made for (`Partitioned` cookies).
    package var cookiePartition: String? {
        get { facts.cookiePartition }
        set { unique().cookiePartition = newValue }
    }
}

/// Where the bytes of a request's body come from.
package enum RequestBody: Sendable {
    case none
    case data(Data)
    /// A regular file, read while it is sent.
    case file(path: String)
    /// The app's stream. It can be read once; sending the body again asks the app for a new one.
    case stream(any BodyStream)
    /// The app will be asked for the stream (`needNewBodyStream`) before the first byte is sent.
    case streamOnDemand
}

/// A body that the app produces while it is sent; the façade wraps `InputStream` in one.
package protocol BodyStream: AnyObject, Sendable {
    /// Reads up to `count` bytes off the event loop and answers once, from any thread: bytes, empty data at the end, or the failure.
    func read(upTo count: Int, reply: @escaping @Sendable (Result<Data, any Error>) -> Void)
    func close()
}
