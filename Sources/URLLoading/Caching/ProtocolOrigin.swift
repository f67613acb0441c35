// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import HTTPRules
internal import HTTPWire
internal import LoadingModel

/// The `URLProtocol` class that delivered a cached response.
///
/// The entry is given to instances of that class, and is visible to the app. The session's own loaders never use the entry.
struct ProtocolOrigin: Sendable {
    let className: String
    /// The request of the load; nil if the entry was read from disk.
    ///
    /// The request lacks its body stream and properties, so that the entry does not retain them.
    var request: URLRequest?

    init(className: String, request: URLRequest? = nil) {
        self.className = className
        self.request = request
    }

    init(_ type: URLProtocol.Type, _ request: URLRequest) {
        self.init(className: Self.name(of: type), request: URLRequest(loadRequest: request.storage.load, template: nil))
    }

    /// Whether an entry with this origin may be given to a class for a request.
    func serves(_ type: URLProtocol.Type, _ other: URLRequest, _ response: URLResponse) -> Bool {
        guard className == Self.name(of: type) else { return false }
        guard let request else { return true }
        return type.requestIsCacheEquivalent(other, to: request)
            && (Self.credential(of: request) == nil || Self.isPublic(response)
                || Self.credential(of: request) == Self.credential(of: other))
    }

    /// Returns where the response to a request may be stored.
    ///
    /// A response that was obtained with a credential and is not `public` must be used only for requests with the same credential.
    /// It is stored only in memory, because only the memory cache can compare credentials. `no-store` in the request or the
    /// response forbids storing.
    static func policy(
        _ policy: URLCache.StoragePolicy, _ request: URLRequest, _ response: URLResponse
    ) -> URLCache.StoragePolicy {
        let control = (response as? HTTPURLResponse).map { CacheControl($0.headers) }
        if control?.noStore == true || CacheControl(request: request.loadRequest.headers).noStore { return .notAllowed }
        return policy == .allowed && credential(of: request) != nil && !isPublic(response) ? .allowedInMemoryOnly : policy
    }

    private static func credential(of request: URLRequest) -> String? { request.value(forHTTPHeaderField: "Authorization") }

    private static func isPublic(_ response: URLResponse) -> Bool {
        (response as? HTTPURLResponse)?.headers.hasToken("public", in: .cacheControl) ?? false
    }

    /// Returns the name of a class; the name is the same in every run of the program.
    ///
    /// Classes that are private to a file or a function are an exception: their names, even when mangled, contain an address. A
    /// later run therefore does not use the entries of such a class on disk.
    private static func name(of type: URLProtocol.Type) -> String { String(reflecting: type) }
}
