// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// One element of a `Sec-WebSocket-Extensions` field (RFC 6455, section 9.1).
struct WebSocketExtension: Hashable {
    struct Parameter: Hashable {
        var name: String
        var value: String?
    }

    var name: String
    var parameters: [Parameter] = []

    /// Parses the value of a field; returns nil if the value is malformed.
    ///
    /// Whitespace is allowed between any two words, as in all grammars based on RFC 2616 (section 2.1, "implied \*LWS"). List elements
    /// may be empty, but not all of them.
    static func list(_ fieldValue: String) -> [WebSocketExtension]? {
        var reader = FieldReader(fieldValue)
        var list: [WebSocketExtension] = []
        while true {
            reader.skipWhitespace()
            if reader.isAtEnd { break }
            if reader.skipIfPresent(UInt8(ascii: ",")) { continue }
            let name = reader.readToken()
            guard !name.isEmpty else { return nil }
            var element = WebSocketExtension(name: String(decoding: name, as: UTF8.self))
            reader.skipWhitespace()
            while reader.skipIfPresent(UInt8(ascii: ";")) {
                guard let parameter = readParameter(&reader) else { return nil }
                element.parameters.append(parameter)
                reader.skipWhitespace()
            }
            guard reader.isAtEnd || reader.next == UInt8(ascii: ",") else { return nil }
            list.append(element)
        }
        return list.isEmpty ? nil : list
    }

    /// Reads `token [ "=" ( token | quoted-string ) ]`.
    private static func readParameter(_ reader: inout FieldReader) -> Parameter? {
        reader.skipWhitespace()
        let name = reader.readToken()
        guard !name.isEmpty else { return nil }
        var parameter = Parameter(name: String(decoding: name, as: UTF8.self))
        reader.skipWhitespace()
        guard reader.skipIfPresent(UInt8(ascii: "=")) else { return parameter }
        reader.skipWhitespace()
        // "The value after quoted-string unescaping MUST conform to the 'token' ABNF."
        guard let value = reader.readValue(), !value.isEmpty, value.allSatisfy(ASCII.isTokenCharacter) else { return nil }
        parameter.value = String(decoding: value, as: UTF8.self)
        return parameter
    }
}
