// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import HTTPRules
internal import HTTPWire
internal import LoadingModel

extension CachedURLResponse {
    /// Converts the entry that the engine is about to store.
    convenience init(_ cached: CachedResponse) {
        let notes = cached.attachment as? CacheNotes ?? cached.userInfo.flatMap(CacheNotes.init)
        self.init(
            response: URLResponse.make(cached.response), data: cached.data, userInfo: notes?.userInfo,
            storagePolicy: URLCache.StoragePolicy(rawValue: cached.storagePolicy.rawValue) ?? .notAllowed,
            sentFields: cached.sentFields, security: cached.security as? ConnectionSecurity
        )
        origin = notes?.origin
    }

    /// Converts the app's entry for the engine.
    var forEngine: CachedResponse {
        let notes = userInfo == nil && origin == nil ? nil : CacheNotes(userInfo: userInfo, origin: origin)
        return CachedResponse(
            response: response.forEngine, data: data, userInfo: notes?.encoded(), attachment: notes,
            storagePolicy: CachedResponse.StoragePolicy(rawValue: storagePolicy.rawValue) ?? .notAllowed,
            sentFields: sentFields, security: security
        )
    }
}

extension URLResponse {
    /// The response for the engine, with its head if it is an HTTP response.
    fileprivate var forEngine: LoadResponse {
        let url = url ?? URL(fileURLWithPath: "/")
        guard let http = self as? HTTPURLResponse else {
            return LoadResponse(url: url, kind: .application(self), expectedLength: expectedContentLength)
        }
        let head = ResponseHead(
            majorVersion: http.majorVersion, minorVersion: http.minorVersion, status: http.statusCode, reason: http.reason,
            headers: http.headers
        )
        return LoadResponse(url: url, kind: .http(head), expectedLength: expectedContentLength)
    }
}
