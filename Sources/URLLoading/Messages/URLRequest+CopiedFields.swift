//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire

extension URLRequest {
    /// Sets a header field to what a response has of it, octet for octet.
    ///
    /// A value that is no UTF-8 is shown as ISO 8859-1, and a text that is set is sent as UTF-8: where a server is to get back what it
    /// sent, the text is not enough. Several values are joined by ", ". Where the response has no such field, nothing changes.
    ///
    /// Not in Apple's API.
    ///
    /// - Parameters:
    ///   - field: The name of the field in the response.
    ///   - response: Where it comes from.
    ///   - name: Its name in the request; nil for the same.
    public mutating func copyHTTPHeaderField(_ field: String, from response: HTTPURLResponse, as name: String? = nil) {
        let values = response.headers.octetTexts(of: field)
        if !values.isEmpty { setValue(values.joined(separator: ", "), forHTTPHeaderField: name ?? field) }
    }
}
