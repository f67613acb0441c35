//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// What a request says before its body: method, target in the form the connection needs, and fields, `Host` included.
package struct RequestHead: Sendable, Hashable {
    package var method: String
    /// The request-target as it goes on the wire (RFC 9112, section 3.2).
    package var target: String
    package var headers: HeaderBlock
    /// The version of HTTP that it is sent by, as far as that is known.
    package var majorVersion = 1

    package init(method: String, target: String, headers: HeaderBlock) {
        self.method = method
        self.target = target
        self.headers = headers
    }
}

/// What a response says before its body.
package struct ResponseHead: Sendable, Hashable {
    /// The version of HTTP, as in 1.1 or 2.0.
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
