//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// How client and server compress messages: what was agreed upon of permessage-deflate (RFC 7692, section 7.1).
package struct MessageDeflateParameters: Hashable, Sendable {
    private typealias Name = MessageDeflateOffer.Name

    /// Whether we may go on with the window of the message before.
    package var clientTakesContextOver: Bool
    /// How far back our compression may reach at most, as a power of two from 8 to 15.
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

    /// Whether we compress at all.
    ///
    /// zlib has no raw window of 8 bits for compression. With one of 9 it happens to reach back 250 bytes, which a window of 8 would
    /// have, but no document promises that, and "the client MUST NOT use" a larger one (section 7.1.2.2). So every message is sent
    /// uncompressed, as any message may be (section 6); the server compresses all the same.
    package var clientCompresses: Bool { clientWindowBits > 8 }

    /// Reads the server's answer to an offer.
    ///
    /// "A client MUST _Fail the WebSocket Connection_" where the answer has a parameter that is not defined for answers, one with a bad
    /// value, one twice, or where the client does not support what it says (section 7.1). The server may demand of either side, unasked,
    /// that it begins each message anew, and say how far back it reaches itself.
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
        // "A server accepts an extension negotiation offer that includes the … extension parameter by including" it in its answer
        // (sections 7.1.1.1 and 7.1.2.1, there "with the same or smaller value").
        guard offer.serverTakesContextOver || !serverTakesContextOver else {
            throw .disregardedParameter(Name.serverNoContextTakeover)
        }
        guard serverWindowBits <= offer.serverWindowBits else { throw .disregardedParameter(Name.serverMaxWindowBits) }
    }

    /// "A decimal integer value without leading zeroes between 8 to 15, inclusive" (section 7.1.2).
    private static func windowBits(_ parameter: WebSocketExtension.Parameter) throws(WebSocketHandshakeFailure) -> Int {
        guard let value = parameter.value, let bits = (8...15).first(where: { String($0) == value }) else {
            throw .badParameterValue(parameter.name)
        }
        return bits
    }
}
