// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import HTTPWire
import LoadingEngine
import LoadingModel

/// The key of cache entries: scheme, host, port, path and query (RFC 9111, section 2).
///
/// The fragment is ignored.
struct CacheKey: Hashable {
    let text: String

    init?(_ request: URLRequest) {
        guard let url = request.url else { return nil }
        text = HTTPRules.CacheKey.text(of: url)
    }

    /// The key of responses delivered by a `URLProtocol` class of the app.
    var forProtocolResponse: String { HTTPRules.CacheKey.forProtocolResponse(text) }

    /// Returns the request fields as a session would send them, with defaults for fields that the app did not set.
    ///
    /// A response's `Vary` field can name any of these fields. With the defaults, an app finds responses that a session stored, and
    /// vice versa.
    static func fields(of request: URLRequest) -> HeaderBlock {
        if let sent = request.storage.load.sentFields { return sent }
        var fields = request.storage.load.headers
        for field in sessionFields where !fields.contains(field.name) { fields.append(field.name, field.value) }
        return fields
    }

    private static let sessionFields = SessionSettings().enginePolicy().additionalHeaders + [SystemCodings.acceptEncoding]
}
