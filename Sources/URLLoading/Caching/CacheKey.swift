//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import HTTPRules
import HTTPWire
import LoadingEngine
import LoadingModel

/// What the entries of a cache are found by: scheme, host, port, path and query (RFC 9111, section 2).
///
/// The fragment does not count.
struct CacheKey: Hashable {
    let text: String

    init?(_ request: URLRequest) {
        guard let url = request.url else { return nil }
        text = HTTPRules.CacheKey.text(of: url)
    }

    /// What a class of the app answered is found by this.
    var ofProtocolAnswer: String { HTTPRules.CacheKey.ofProtocolAnswer(text) }

    /// The request fields that `Vary` may name, as a session would send them: what the app did not set is set by default.
    ///
    /// So an app finds what a session stored, and the other way round.
    static func fields(of request: URLRequest) -> HeaderBlock {
        if let sent = request.storage.load.sentFields { return sent }
        var fields = request.storage.load.headers
        for field in sessionFields where !fields.contains(field.name) { fields.append(field.name, field.value) }
        return fields
    }

    private static let sessionFields = SessionSettings().wholePolicy().additionalHeaders + [SystemCodings.acceptEncoding]
}
