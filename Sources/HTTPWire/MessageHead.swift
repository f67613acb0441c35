// SPDX-License-Identifier: Apache-2.0

/// The head of a request: the method, the target in the form that the connection needs, and the header fields including `Host`.
package struct RequestHead: Sendable, Hashable {
    package var method: String
    /// The request-target as it is sent (RFC 9112, section 3.2).
    package var target: String
    package var headers: HeaderBlock
    /// The major HTTP version used to send the request, if it is known.
    package var majorVersion = 1

    package init(method: String, target: String, headers: HeaderBlock) {
        self.method = method
        self.target = target
        self.headers = headers
    }
}

/// The head of a response.
package struct ResponseHead: Sendable, Hashable {
    /// The major number of the HTTP version, as in 1.1 or 2.0.
    package var majorVersion: Int
    package var minorVersion: Int
    package var status: Int
    package var reason: String
    package var headers: HeaderBlock

    package init(
        majorVersion: Int = 1, minorVersion: Int = 1, status: Int, reason: String = "", headers: HeaderBlock = HeaderBlock()
    ) {
        self.majorVersion = majorVersion
        self.minorVersion = minorVersion
        self.status = status
        self.reason = reason
        self.headers = headers
    }
}
