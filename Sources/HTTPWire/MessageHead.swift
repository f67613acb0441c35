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

    package init(method: String, target: String, headers: HeaderBlock) {
        self.method = method
        self.target = target
        self.headers = headers
    }
}

/// What a response says before its body.
package struct ResponseHead: Sendable, Hashable {
    /// The minor version of an HTTP/1 response; 0 or 1.
    package var minorVersion: Int
    package var status: Int
    package var reason: String
    package var headers: HeaderBlock

    package init(minorVersion: Int = 1, status: Int, reason: String = "", headers: HeaderBlock = HeaderBlock()) {
        self.minorVersion = minorVersion
        self.status = status
        self.reason = reason
        self.headers = headers
    }
}
