//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Spells well-known field names as their RFCs do, because apps use keys such as `allHeaderFields["Content-Type"]`.
///
/// Apple's system does the same, and leaves other names as the server sent them (verified by tests run on Apple's platforms).
enum FieldSpelling {
    /// Returns the spelling for a lower-case name, or nil if the name is not well known.
    static func canonical(_ lowercasedName: String) -> String? { spellings[lowercasedName] }

    private static let known = [
        "Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Accept-Ranges", "Age", "Allow", "Authorization",
        "Cache-Control", "Connection", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Length",
        "Content-Location", "Content-MD5", "Content-Range", "Content-Security-Policy", "Content-Type", "Cookie", "Date", "ETag",
        "Expect", "Expires", "From", "Host", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range",
        "If-Unmodified-Since", "Keep-Alive", "Last-Modified", "Link", "Location", "Max-Forwards", "Origin", "Pragma",
        "Proxy-Authenticate", "Proxy-Authorization", "Range", "Referer", "Retry-After", "Server", "Set-Cookie",
        "Strict-Transport-Security", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent", "Vary", "Via", "Warning",
        "WWW-Authenticate",
    ]

    private static let spellings = Dictionary(uniqueKeysWithValues: known.map { ($0.lowercased(), $0) })
}
