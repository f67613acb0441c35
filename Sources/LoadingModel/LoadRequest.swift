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

    package var url: URL?
    package var mainDocumentURL: URL?
    package var method: String
    /// The caller's own fields; the engine adds the rest when it composes the message.
    package var headers: HeaderBlock
    package var body: RequestBody
    /// Seconds without progress after which the load fails; nil where the caller set none and the session's applies.
    package var timeout: Double?
    package var cachePolicy: CachePolicy
    package var handlesCookies: Bool
    /// Names the partition of the site that the request is made for (`Partitioned` cookies).
    package var cookiePartition: String?

    package init(url: URL?) {
        self.url = url
        mainDocumentURL = nil
        method = "GET"
        headers = HeaderBlock()
        body = .none
        timeout = nil
        cachePolicy = .useProtocolCachePolicy
        handlesCookies = true
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
