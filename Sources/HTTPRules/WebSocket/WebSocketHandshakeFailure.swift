// SPDX-License-Identifier: Apache-2.0

/// Why a server's response does not open a WebSocket connection (RFC 6455, section 4.1; RFC 7692, section 5.1; RFC 8441, section
/// 5).
package enum WebSocketHandshakeFailure: Error, Hashable, Sendable {
    /// The status is not 101 or, over HTTP/2, not from 200 to 299.
    case status(Int)
    /// `Upgrade` is missing or is not `websocket`.
    case upgrade
    /// `Connection` does not list `Upgrade`.
    case connection
    case missingAccept
    case repeatedAccept
    case wrongAccept
    case repeatedProtocol
    /// The server chose a subprotocol that was not offered, or more than one subprotocol.
    case unofferedProtocol(String)
    case repeatedExtensions
    case malformedExtensions
    case unofferedExtension(String)
    case repeatedExtension(String)
    // The parameters of permessage-deflate.
    case unknownParameter(String)
    case repeatedParameter(String)
    case badParameterValue(String)
    /// A parameter that requires a matching parameter in the offer (RFC 7692, section 7.1.2.2).
    case unofferedParameter(String)
    /// The response does not grant a parameter that the offer requested (RFC 7692, section 7.1).
    case disregardedParameter(String)

    package var message: String {
        switch self {
        case .status(let status): "the server responded to the WebSocket handshake with status \(status)"
        case .upgrade: "the server's Upgrade field is missing or not websocket"
        case .connection: "the server's Connection field does not list Upgrade"
        case .missingAccept: "the server's response has no Sec-WebSocket-Accept field"
        case .repeatedAccept: "the server's response has more than one Sec-WebSocket-Accept field"
        case .wrongAccept: "the server's Sec-WebSocket-Accept does not match the key that was sent"
        case .repeatedProtocol: "the server's response has more than one Sec-WebSocket-Protocol field"
        case .unofferedProtocol(let name):
            "the server chose the subprotocol \(String(reflecting: String(name.prefix(100)))), which was not offered"
        case .repeatedExtensions: "the server's response has more than one Sec-WebSocket-Extensions field"
        case .malformedExtensions: "the server's Sec-WebSocket-Extensions field is malformed"
        case .unofferedExtension(let name): "the server uses the extension \(name), which was not offered"
        case .repeatedExtension(let name): "the server uses the extension \(name) twice"
        case .unknownParameter(let name): "permessage-deflate has the unknown parameter \(name)"
        case .repeatedParameter(let name): "permessage-deflate has the parameter \(name) twice"
        case .badParameterValue(let name): "permessage-deflate has an invalid value for \(name)"
        case .unofferedParameter(let name): "permessage-deflate has the parameter \(name), which was not offered"
        case .disregardedParameter(let name): "permessage-deflate does not grant \(name), which was requested"
        }
    }
}
