//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// What an entry of the cache is found by: method GET assumed, the scheme, host and port without regard to case and defaults, the
/// path and the query (RFC 9111, section 2). The fragment does not count.
struct CacheKey: Hashable {
    private let text: String

    init?(_ request: URLRequest) {
        guard let url = request.url?.absoluteURL, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true),
            let scheme = parts.scheme?.lowercased()
        else { return nil }
        parts.scheme = scheme
        parts.host = parts.host?.lowercased()
        parts.fragment = nil
        parts.user = nil
        parts.password = nil
        if (scheme, parts.port) == ("http", 80) || (scheme, parts.port) == ("https", 443) { parts.port = nil }
        if parts.host != nil, parts.path.isEmpty { parts.path = "/" }
        guard let text = parts.string else { return nil }
        self.text = text
    }
}
