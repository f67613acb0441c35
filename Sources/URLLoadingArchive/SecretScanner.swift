// SPDX-License-Identifier: Apache-2.0

import Foundation

extension HTTPArchive.Redaction {
    /// The characters that end a URL in text.
    private static let delimiters = " <>\"\t\r\n"

    /// Returns a URL without user names, passwords and secret query parameters.
    func url(_ text: String) -> String { scanned(text, delimiters: "", depth: 0) }

    /// Returns a text without the secrets in its URLs.
    func text(_ text: String) -> String { scanned(text, delimiters: Self.delimiters, depth: 0) }

    private func scanned(_ text: String, delimiters: String, depth: Int) -> String {
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        var at = 0
        // The end of a query value that has already been searched. The value has no `&`, `#` or percent sign.
        var plainEnd = 0
        func end(from start: Int, of more: String) -> Int {
            let ends = Array((delimiters + more).utf8)
            return bytes[start...].firstIndex(where: ends.contains) ?? bytes.count
        }
        while at < bytes.count {
            let byte = bytes[at]
            result.append(byte)
            at += 1
            if byte == UInt8(ascii: "/"), at < bytes.count, bytes[at] == byte {
                result.append(byte)
                at += 1
                // The last `@` is used, because a password may contain an `@`.
                if let sign = bytes[at..<end(from: at, of: "/?#\\")].lastIndex(of: UInt8(ascii: "@")) {
                    result += Self.marker.utf8
                    at = sign
                }
            }
            guard "?&#;".utf8.contains(byte) else { continue }
            let nameEnd = end(from: at, of: "?&#;=")
            guard nameEnd < bytes.count, bytes[nameEnd] == UInt8(ascii: "=") else { continue }
            // The value of a path parameter ends before the query.
            let isInPath = byte == UInt8(ascii: ";")
            let valueEnd = !isInPath && nameEnd < plainEnd ? plainEnd : end(from: nameEnd + 1, of: isInPath ? "?&#;" : "&#")
            let name = decoded(bytes[at..<nameEnd])
            let value = bytes[(nameEnd + 1)..<valueEnd]
            if isSecret(name) {
                result += bytes[at...nameEnd] + (value.isEmpty ? [] : Array(Self.marker.utf8))
                at = valueEnd
            } else if nameEnd >= plainEnd, value.contains(UInt8(ascii: "%")) {
                // The value may be a URL that contains secrets.
                let inner = decoded(value)
                let redacted = depth < 4 ? scanned(inner, delimiters: "", depth: depth + 1) : Self.marker
                result += bytes[at...nameEnd] + (redacted == inner ? Array(value) : Array(QueryParts.encoded(redacted).utf8))
                at = valueEnd
            } else if !isInPath {
                plainEnd = max(plainEnd, valueEnd)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private func decoded(_ bytes: ArraySlice<UInt8>) -> String {
        QueryParts.decoded(Substring(String(decoding: bytes, as: UTF8.self)))
    }

    /// Returns JSON without the values of members that have secret names, and without the secrets in its URLs.
    func json(_ text: String) -> String {
        let bytes = Array(text.utf8)
        let (quote, blanks) = (UInt8(ascii: "\""), Set(" \t\r\n".utf8))
        var result: [UInt8] = []
        var at = 0
        /// Returns the offset after the string that begins at `start`.
        func stringEnd(_ start: Int) -> Int {
            var at = start + 1
            while at < bytes.count, bytes[at] != quote { at += bytes[at] == UInt8(ascii: "\\") ? 2 : 1 }
            return min(at + 1, bytes.count)
        }
        /// Returns the offset after the array or object that begins at `start`.
        func groupEnd(_ start: Int) -> Int {
            var (at, depth) = (start, 0)
            while at < bytes.count {
                switch bytes[at] {
                case quote:
                    at = stringEnd(at)
                    continue
                case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
                case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
                default: break
                }
                at += 1
                if depth == 0 { return at }
            }
            return bytes.count
        }
        while at < bytes.count {
            guard bytes[at] == quote else {
                result.append(bytes[at])
                at += 1
                continue
            }
            let nameEnd = stringEnd(at)
            let string = bytes[at..<nameEnd]
            at = nameEnd
            guard let colon = bytes[at...].firstIndex(where: { !blanks.contains($0) }), bytes[colon] == UInt8(ascii: ":"),
                let value = bytes[(colon + 1)...].firstIndex(where: { !blanks.contains($0) }), isSecret(name(string))
            else {
                result += withoutSecrets(string)
                continue
            }
            result += string + bytes[at..<value] + Array("\"\(Self.marker)\"".utf8)
            switch bytes[value] {
            case quote: at = stringEnd(value)
            case UInt8(ascii: "["), UInt8(ascii: "{"): at = groupEnd(value)
            default: at = bytes[value...].firstIndex { ",]}".utf8.contains($0) } ?? bytes.count
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Returns a JSON string without the secrets in its URLs.
    private func withoutSecrets(_ string: ArraySlice<UInt8>) -> [UInt8] {
        let plain = name(string)
        let redacted = text(plain)
        guard redacted != plain, let encoded = try? JSONEncoder().encode(redacted) else { return Array(string) }
        return Array(encoded)
    }

    /// Returns the decoded value of a JSON string.
    private func name(_ string: ArraySlice<UInt8>) -> String {
        let plain = String(decoding: string.dropFirst().dropLast(), as: UTF8.self)
        guard string.contains(UInt8(ascii: "\\")) else { return plain }
        return (try? JSONDecoder().decode(String.self, from: Data(string))) ?? plain
    }
}
