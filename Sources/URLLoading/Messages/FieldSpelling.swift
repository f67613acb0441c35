// SPDX-License-Identifier: Apache-2.0

internal import HTTPWire

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

extension HeaderBlock {
    /// The fields as a dictionary, in which the values of fields with the same name are joined.
    ///
    /// A name is spelled as in its first field, unless there is another spelling for the lowercase name.
    func dictionary(separator: String, spelling: (String) -> String? = { _ in nil }) -> [String: String] {
        var dictionary: [String: String] = [:]
        var spellings: [String: String] = [:]
        for (name, value) in fields {
            let key = name.lowercased()
            if let spelling = spellings[key] {
                dictionary[spelling]?.append(separator + value)
            } else {
                let spelling = spelling(key) ?? name
                spellings[key] = spelling
                dictionary[spelling] = value
            }
        }
        return dictionary
    }
}
