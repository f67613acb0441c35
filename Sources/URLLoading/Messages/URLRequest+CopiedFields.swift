// SPDX-License-Identifier: Apache-2.0

import HTTPWire

extension URLRequest {
    /// Copies the value of a response header field into this request, octet for octet.
    ///
    /// The app sees a value that is not valid UTF-8 as ISO 8859-1 text, but values that the app sets are sent as UTF-8. Use this
    /// method if a server must get back exactly what it sent. Several values are joined by ", ". If the response has no such field,
    /// the request does not change.
    ///
    /// Not in Apple's API.
    ///
    /// - Parameters:
    ///   - field: The name of the field in the response.
    ///   - response: The response.
    ///   - name: The name of the field in the request; nil for the same name.
    public mutating func copyHTTPHeaderField(_ field: String, from response: HTTPURLResponse, as name: String? = nil) {
        let values = response.headers.octetTexts(of: field)
        if !values.isEmpty { setValue(values.joined(separator: ", "), forHTTPHeaderField: name ?? field) }
    }
}
