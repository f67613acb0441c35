// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Parses the file name that a server proposes: RFC 6266, with the character sets of RFC 8187 and the continuations of RFC 2231.
///
/// The result is not safe to use as a file name: see ``SuggestedFilename``.
package enum ContentDisposition {
    /// Returns the file name, or nil if the field contains none.
    ///
    /// `filename*` is preferred to `filename` regardless of their order (RFC 6266, section 4.3).
    package static func filename(_ header: String) -> String? {
        let bytes = Array(header.utf8)[...]
        let end = bytes.firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex
        // "filename=x" without a disposition type is invalid; browsers ignore it.
        let type = ASCII.trimmed(bytes[..<end])
        guard !type.isEmpty, type.allSatisfy(ASCII.isTokenCharacter) else { return nil }
        let parameters = FieldParameters(bytes[end...])
        if let extended = parameters.first("filename*"), let name = decoded(extended) { return name }
        if let plain = parameters.first("filename"), !plain.isEmpty { return plain }
        return continued(parameters)
    }

    /// Decodes `charset'language'%XX…` (RFC 8187, section 3.2).
    ///
    /// Returns nil if the value is malformed or has a charset other than UTF-8 and ISO 8859-1: "recipients should ignore the
    /// parameter".
    private static func decoded(_ value: String) -> String? {
        let parts = value.utf8.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let octets = PercentEncoding.strictBytes(parts[2]) else { return nil }
        return text(octets, charset: String(parts[0]))
    }

    private static func text(_ octets: [UInt8], charset: String?) -> String? {
        guard !octets.isEmpty else { return nil }
        switch charset?.lowercased() {
        case "utf-8": return String(validating: octets, as: UTF8.self)
        case "iso-8859-1": return String(String.UnicodeScalarView(octets.map { Unicode.Scalar($0) }))
        default: return nil
        }
    }

    /// Joins `filename*0`, `filename*1*` and so on (RFC 2231, sections 3 and 4.1).
    ///
    /// HTTP does not use such continuations, but mail gateways do.
    private static func continued(_ parameters: FieldParameters) -> String? {
        var octets: [UInt8] = []
        var charset: String?
        for number in 0..<256 {
            if let plain = parameters.first("filename*\(number)") {
                octets += plain.utf8
            } else if let extended = parameters.first("filename*\(number)*") {
                var value = extended.utf8[...]
                if number == 0 {
                    let parts = value.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
                    guard parts.count == 3 else { return nil }
                    charset = String(parts[0])
                    value = parts[2]
                }
                guard let decoded = PercentEncoding.strictBytes(value) else { return nil }
                octets += decoded
            } else {
                break
            }
        }
        return text(octets, charset: charset ?? "utf-8")
    }
}
