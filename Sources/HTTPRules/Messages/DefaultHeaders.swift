//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire

/// The fields that every request carries unless the app sets its own.
package enum DefaultHeaders {
    /// In the shape ``OutgoingHeaders`` takes; what a session adds to them is ``acceptEncoding(_:)``.
    ///
    /// - Parameters:
    ///   - processName: Names the program in `User-Agent`.
    ///   - version: The program's, where it is known.
    ///   - languages: The user's, the dearest first, as `en-US`.
    /// - Returns: Names and values.
    package static func fields(processName: String, version: String?, languages: [String]) -> [(name: String, value: String)] {
        var fields = [
            (name: "Accept", value: "*/*"),
            (name: "User-Agent", value: userAgent(processName: processName, version: version)),
        ]
        if let languages = acceptLanguage(languages) { fields.append((name: "Accept-Language", value: languages)) }
        return fields
    }

    /// `gzip, deflate, br, zstd`, as browsers have it: the codings that are undone here in any case, and then those that libraries
    /// of the system undo, if they are there.
    ///
    /// Which these are is for the process to say that sends the request, not for the one that makes the session.
    package static func acceptEncoding(_ libraries: [String]) -> (name: String, value: String) {
        (name: "Accept-Encoding", value: (["gzip", "deflate"] + libraries).joined(separator: ", "))
    }

    /// `<process name>/<version> URLLoading/0.1.0 (Linux)`, in the shape of Apple's `<bundle name>/<version> CFNetwork/… Darwin/…`.
    ///
    /// Characters that may not stand in a product (RFC 9110, section 10.1.5) are percent-encoded, as Apple's are.
    package static func userAgent(processName: String, version: String?) -> String {
        "\(product(processName, "unknown"))/\(product(version ?? "", "1")) URLLoading/\(LibraryVersion.text) (Linux)"
    }

    private static func product(_ text: String, _ fallback: String) -> String {
        guard !text.isEmpty else { return fallback }
        var encoded: [UInt8] = []
        for byte in text.utf8 {
            if ASCII.isTokenCharacter(byte) { encoded.append(byte) } else { PercentEncoding.append(byte, to: &encoded) }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    /// `en-US,en;q=0.9,de;q=0.8`: each language a tenth less dear than the one before, as Apple writes it; ten at most, because
    /// there are no more tenths (RFC 9110, section 12.5.4).
    ///
    /// Nil where no language is known.
    package static func acceptLanguage(_ languages: [String]) -> String? {
        var ranges: [String] = []
        for language in languages where ranges.count < 10 {
            let range = String(language.map { $0 == "_" ? "-" : $0 })
            if isRange(range), !ranges.contains(range) { ranges.append(range) }
        }
        guard !ranges.isEmpty else { return nil }
        return ranges.enumerated().map { $0 == 0 ? $1 : "\($1);q=0.\(10 - $0)" }.joined(separator: ",")
    }

    /// `language-range` of RFC 4647, section 2.1, without the asterisk.
    private static func isRange(_ text: String) -> Bool {
        text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false).allSatisfy { subtag in
            (1...8).contains(subtag.count)
                && subtag.allSatisfy { ASCII.isTokenCharacter($0) && $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "z") }
        }
    }
}
