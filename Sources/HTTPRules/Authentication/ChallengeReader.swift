// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Parses one field line for ``AuthenticateHeader``.
///
/// Commas separate both challenges and parameters, so the parser has to look ahead.
struct ChallengeReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
    }

    mutating func readAll() -> [AuthenticateHeader.Challenge] {
        var challenges: [AuthenticateHeader.Challenge] = []
        skipCommas()
        while !rest.isEmpty {
            if let challenge = takeChallenge() { challenges.append(challenge) } else { skipMember() }
            skipCommas()
        }
        return challenges
    }

    private mutating func takeChallenge() -> AuthenticateHeader.Challenge? {
        guard let scheme = takeToken(), rest.first.map({ ASCII.isWhitespace($0) || $0 == UInt8(ascii: ",") }) ?? true else {
            return nil
        }
        skipSpaces()
        if let token68 = takeToken68() { return .init(scheme: scheme, token68: token68) }
        return .init(scheme: scheme, parameters: takeParameters())
    }

    /// Reads parameters up to the next challenge.
    mutating func takeParameters() -> [AuthenticateHeader.Parameter] {
        var parameters: [AuthenticateHeader.Parameter] = []
        var end = rest
        skipCommas()
        while let parameter = takeParameter() {
            parameters.append(parameter)
            // Only a comma may follow a value.
            skipSpaces()
            if let first = rest.first, first != UInt8(ascii: ",") { skipMember() }
            end = rest
            skipCommas()
        }
        rest = end
        return parameters
    }

    /// Reads `token BWS "=" BWS ( token / quoted-string )`; returns nil at the beginning of the next challenge.
    private mutating func takeParameter() -> AuthenticateHeader.Parameter? {
        guard let name = takeToken() else { return nil }
        skipSpaces()
        guard rest.first == UInt8(ascii: "=") else { return nil }
        rest.removeFirst()
        skipSpaces()
        return AuthenticateHeader.Parameter(name: name.lowercased(), value: takeValue())
    }

    /// Reads a quoted string without its quotation marks, or the text up to the next comma or whitespace.
    private mutating func takeValue() -> String {
        guard rest.first == UInt8(ascii: "\"") else {
            let value = rest.prefix { !ASCII.isWhitespace($0) && $0 != UInt8(ascii: ",") }
            rest = rest[value.endIndex...]
            return String(decoding: value, as: UTF8.self)
        }
        rest.removeFirst()
        var value: [UInt8] = []
        while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
            if byte == UInt8(ascii: "\\"), let escaped = rest.popFirst() { value.append(escaped) } else { value.append(byte) }
        }
        return String(decoding: value, as: UTF8.self)
    }

    private mutating func takeToken() -> String? {
        let token = rest.prefix(while: ASCII.isTokenCharacter)
        guard !token.isEmpty else { return nil }
        rest = rest[token.endIndex...]
        return String(decoding: token, as: UTF8.self)
    }

    /// Reads the text that NTLM and Negotiate send instead of parameters: base64 or similar, up to the end of the list member.
    private mutating func takeToken68() -> String? {
        let characters = rest.prefix { byte in
            ASCII.isTokenCharacter(byte) && !"!#$%&'*^`|".utf8.contains(byte) || byte == UInt8(ascii: "/")
        }
        guard !characters.isEmpty else { return nil }
        let padding = rest[characters.endIndex...].prefix { $0 == UInt8(ascii: "=") }
        let after = rest[padding.endIndex...].drop(while: ASCII.isWhitespace)
        guard after.isEmpty || after.first == UInt8(ascii: ",") else { return nil }
        defer { rest = after }
        return String(decoding: rest[..<padding.endIndex], as: UTF8.self)
    }

    private mutating func skipSpaces() {
        rest = rest.drop(while: ASCII.isWhitespace)
    }

    private mutating func skipCommas() {
        rest = rest.drop { ASCII.isWhitespace($0) || $0 == UInt8(ascii: ",") }
    }

    /// Skips to the next comma outside of quotation marks.
    private mutating func skipMember() {
        while let byte = rest.first, byte != UInt8(ascii: ",") {
            if byte == UInt8(ascii: "\"") { _ = takeValue() } else { rest.removeFirst() }
        }
    }
}
