// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// The default fields of every request, unless the app sets its own.
package enum DefaultHeaders {
    /// Returns the fields in the form that ``OutgoingHeaders`` expects.
    ///
    /// A session adds ``acceptEncoding(_:)``.
    ///
    /// - Parameters:
    ///   - processName: The name of the program for `User-Agent`.
    ///   - version: The version of the program, if known.
    ///   - languages: The user's languages in order of preference, such as `en-US`.
    /// - Returns: Names and values.
    package static func fields(processName: String, version: String?, languages: [String]) -> [(name: String, value: String)] {
        var fields = [
            (name: "Accept", value: "*/*"),
            (name: "User-Agent", value: userAgent(processName: processName, version: version)),
        ]
        if let languages = acceptLanguage(languages) { fields.append((name: "Accept-Language", value: languages)) }
        return fields
    }

    /// Returns `gzip, deflate, br, zstd`, as in browsers: first the codings that are always supported, then the codings that the
    /// available system libraries support.
    ///
    /// `libraries` lists the codings that system libraries provide in the process that sends the request, which can differ from the
    /// process that created the session.
    package static func acceptEncoding(_ libraries: [String]) -> (name: String, value: String) {
        (name: "Accept-Encoding", value: (["gzip", "deflate"] + libraries).joined(separator: ", "))
    }

    /// Returns `<process name>/<version> URLLoading/0.1.0 (Linux)`, in the form of Apple's `<bundle name>/<version> CFNetwork/…
    /// Darwin/…`.
    ///
    /// Characters that are not allowed in a product (RFC 9110, section 10.1.5) are percent-encoded, as in Apple's value.
    package static func userAgent(processName: String, version: String?) -> String {
        "\(product(processName, "unknown"))/\(product(version ?? "", "1")) URLLoading/\(LibraryVersion.text) (Linux)"
    }

    private static func product(_ text: String, _ fallback: String) -> String {
        guard !text.isEmpty else { return fallback }
        return PercentEncoding.encoded(text.utf8, except: ASCII.isTokenCharacter)
    }

    /// Returns `en-US,en;q=0.9,de;q=0.8`: the quality decreases by one tenth per language, as in Apple's value.
    ///
    /// At most ten languages are listed, because there are no further tenths (RFC 9110, section 12.5.4).
    ///
    /// Returns nil if no valid language is given.
    package static func acceptLanguage(_ languages: [String]) -> String? {
        var ranges: [String] = []
        for language in languages where ranges.count < 10 {
            let range = String(language.map { $0 == "_" ? "-" : $0 })
            if isRange(range), !ranges.contains(range) { ranges.append(range) }
        }
        guard !ranges.isEmpty else { return nil }
        return ranges.enumerated().map { $0 == 0 ? $1 : "\($1);q=0.\(10 - $0)" }.joined(separator: ",")
    }

    /// Whether a text is a `language-range` (RFC 4647, section 2.1) other than the asterisk.
    private static func isRange(_ text: String) -> Bool {
        text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false).allSatisfy { subtag in
            (1...8).contains(subtag.count)
                && subtag.allSatisfy { ASCII.isTokenCharacter($0) && $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "z") }
        }
    }
}
