// SPDX-License-Identifier: Apache-2.0

import Crypto
import FoundationEssentials
package import HTTPWire

/// The result of a WebSocket handshake.
package struct WebSocketAgreement: Hashable, Sendable {
    /// The chosen subprotocol; nil if the server chose none.
    package var subprotocol: String?
    /// The compression parameters; nil if messages are not compressed.
    package var deflate: MessageDeflateParameters?
}

/// The client side of the opening handshake: the request fields, and the validation of the server's response (RFC 6455, section
/// 4.1).
package struct WebSocketHandshake: Hashable, Sendable {
    package enum Way: Hashable, Sendable {
        /// `GET` with `Upgrade` over HTTP/1.1, with the key that is sent.
        case upgrade(key: String)
        /// `CONNECT` with `:protocol` over HTTP/2, without a key (RFC 8441, section 5).
        case extendedConnect
    }

    package let way: Way
    package let subprotocols: WebSocketSubprotocols
    package let deflate: MessageDeflateOffer?

    package init(
        _ way: Way, subprotocols: WebSocketSubprotocols = WebSocketSubprotocols(), deflate: MessageDeflateOffer? = nil
    ) {
        self.way = way
        self.subprotocols = subprotocols
        self.deflate = deflate
    }

    /// Returns a new `Sec-WebSocket-Key`: "a nonce consisting of a randomly selected 16-byte value that has been base64-encoded".
    package static func makeKey(using random: inout some RandomNumberGenerator) -> String {
        Data((0..<16).map { _ in UInt8(truncatingIfNeeded: random.next()) }).base64EncodedString()
    }

    /// Returns the required value of `Sec-WebSocket-Accept` for a key.
    package static func accept(for key: String) -> String {
        let hash = Insecure.SHA1.hash(data: Data((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
        return Data(hash).base64EncodedString()
    }

    /// The header fields of the handshake request, in the order of the RFC's example.
    package var requestFields: [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        if case .upgrade(let key) = way {
            fields = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Key", key)]
        }
        if let value = subprotocols.fieldValue { fields.append(("Sec-WebSocket-Protocol", value)) }
        fields.append(("Sec-WebSocket-Version", "13"))
        if let deflate { fields.append(("Sec-WebSocket-Extensions", deflate.fieldValue)) }
        return fields
    }

    /// Whether a response with this status may open the WebSocket connection.
    ///
    /// Any other response is handled like a response to an ordinary request.
    package func accepts(status: Int) -> Bool {
        switch way {
        case .upgrade: status == 101
        case .extendedConnect: 200...299 ~= status
        }
    }

    /// Validates the server's response (RFC 6455, section 4.1).
    package func check(status: Int, headers: HeaderBlock) throws(WebSocketHandshakeFailure) -> WebSocketAgreement {
        guard accepts(status: status) else { throw .status(status) }
        if case .upgrade(let key) = way { try Self.checkUpgrade(headers, key) }
        return WebSocketAgreement(subprotocol: try chosenSubprotocol(headers), deflate: try agreedDeflate(headers))
    }

    private static func checkUpgrade(_ headers: HeaderBlock, _ key: String) throws(WebSocketHandshakeFailure) {
        // "An ASCII case-insensitive match for the value "websocket"": `lowercased()` of a `String` would match more.
        let protocols = headers.all("Upgrade").flatMap { $0.utf8.split(separator: UInt8(ascii: ",")) }
            .map { ASCII.trimmed($0.map(ASCII.lowercased)[...]) }
            .filter { !$0.isEmpty }
        guard !protocols.isEmpty, protocols.allSatisfy({ $0.elementsEqual("websocket".utf8) }) else { throw .upgrade }
        guard headers.hasToken("upgrade", in: .connection) else { throw .connection }
        let answers = headers.all("Sec-WebSocket-Accept")
        guard let answer = answers.first else { throw .missingAccept }
        guard answers.count == 1 else { throw .repeatedAccept }
        guard answer.utf8.elementsEqual(accept(for: key).utf8) else { throw .wrongAccept }
    }

    private func chosenSubprotocol(_ headers: HeaderBlock) throws(WebSocketHandshakeFailure) -> String? {
        let chosen = headers.all("Sec-WebSocket-Protocol")
        // "MUST NOT appear more than once in an HTTP response" (section 11.3.4).
        guard chosen.count <= 1 else { throw .repeatedProtocol }
        guard let name = chosen.first else { return nil }
        // Compares bytes: strings can be equal with different bytes, such as K and the Kelvin sign.
        guard let offered = subprotocols.names.first(where: { $0.utf8.elementsEqual(name.utf8) }) else {
            throw .unofferedProtocol(name)
        }
        return offered
    }

    private func agreedDeflate(_ headers: HeaderBlock) throws(WebSocketHandshakeFailure) -> MessageDeflateParameters? {
        let fields = headers.all("Sec-WebSocket-Extensions")
        // "MUST NOT appear more than once in an HTTP response" (section 11.3.2).
        guard fields.count <= 1 else { throw .repeatedExtensions }
        guard let field = fields.first else { return nil }
        guard let used = WebSocketExtension.list(field) else { throw .malformedExtensions }
        var agreed: MessageDeflateParameters?
        for element in used {
            guard let deflate, element.name == MessageDeflateOffer.extensionName else { throw .unofferedExtension(element.name) }
            guard agreed == nil else { throw .repeatedExtension(element.name) }
            agreed = try MessageDeflateParameters(answer: element.parameters, to: deflate)
        }
        return agreed
    }
}
