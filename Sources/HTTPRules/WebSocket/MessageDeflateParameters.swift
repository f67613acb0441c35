// SPDX-License-Identifier: Apache-2.0

/// The negotiated parameters of permessage-deflate for client and server (RFC 7692, section 7.1).
package struct MessageDeflateParameters: Hashable, Sendable {
    private typealias Name = MessageDeflateOffer.Name

    /// Whether the client may keep its compression context across messages.
    package var clientTakesContextOver: Bool
    /// The maximum window size of the client's compression, as a power of two from 8 to 15.
    package var clientWindowBits: Int
    package var serverTakesContextOver: Bool
    package var serverWindowBits: Int

    package init(
        clientTakesContextOver: Bool = true, clientWindowBits: Int = 15, serverTakesContextOver: Bool = true,
        serverWindowBits: Int = 15
    ) {
        self.clientTakesContextOver = clientTakesContextOver
        self.clientWindowBits = clientWindowBits
        self.serverTakesContextOver = serverTakesContextOver
        self.serverWindowBits = serverWindowBits
    }

    /// Whether the client compresses messages.
    ///
    /// If the window is limited to 8 bits, the client sends every message uncompressed, which is always allowed (section 6). zlib
    /// does not support a raw compression window of 8 bits, and "the client MUST NOT use" a larger window (section 7.1.2.2). With a
    /// window of 9 bits, zlib happens to reach back only 250 bytes, which would fit a window of 8 bits, but its documentation does
    /// not guarantee this distance. The server still compresses its messages.
    package var clientCompresses: Bool { clientWindowBits > 8 }

    /// Parses the server's response to an offer.
    ///
    /// "A client MUST _Fail the WebSocket Connection_" if the response contains a parameter that is not defined for responses, has
    /// an invalid value or appears twice, or if the client does not support the configuration (section 7.1). The server may require
    /// either side to reset its context for each message, and may limit its own window size, even if the offer does not mention these
    /// parameters.
    init(answer: [WebSocketExtension.Parameter], to offer: MessageDeflateOffer) throws(WebSocketHandshakeFailure) {
        self.init()
        var known: Set<String> = []
        for parameter in answer {
            guard known.insert(parameter.name).inserted else { throw .repeatedParameter(parameter.name) }
            switch parameter.name {
            case Name.serverNoContextTakeover:
                guard parameter.value == nil else { throw .badParameterValue(parameter.name) }
                serverTakesContextOver = false
            case Name.clientNoContextTakeover:
                guard parameter.value == nil else { throw .badParameterValue(parameter.name) }
                clientTakesContextOver = false
            case Name.serverMaxWindowBits: serverWindowBits = try Self.windowBits(parameter)
            case Name.clientMaxWindowBits:
                guard offer.allowsClientWindow else { throw .unofferedParameter(parameter.name) }
                clientWindowBits = try Self.windowBits(parameter)
            default: throw .unknownParameter(parameter.name)
            }
        }
        // "A server accepts an extension negotiation offer that includes the … extension parameter by including" the parameter in its
        // response (section 7.1.1.1). A window size must have "the same or smaller value" (section 7.1.2.1).
        guard offer.serverTakesContextOver || !serverTakesContextOver else {
            throw .disregardedParameter(Name.serverNoContextTakeover)
        }
        guard serverWindowBits <= offer.serverWindowBits else { throw .disregardedParameter(Name.serverMaxWindowBits) }
    }

    /// Parses a window size: "A decimal integer value without leading zeroes between 8 to 15, inclusive" (section 7.1.2).
    private static func windowBits(_ parameter: WebSocketExtension.Parameter) throws(WebSocketHandshakeFailure) -> Int {
        guard let value = parameter.value, let bits = (8...15).first(where: { String($0) == value }) else {
            throw .badParameterValue(parameter.name)
        }
        return bits
    }
}
