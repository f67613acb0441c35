// SPDX-License-Identifier: Apache-2.0

/// The permessage-deflate offer in a client's handshake (RFC 7692, section 7.1).
///
/// The offer contains no limits for the client's own window size and context takeover: a client may always use less than was
/// negotiated.
package struct MessageDeflateOffer: Hashable, Sendable {
    package static let extensionName = "permessage-deflate"

    enum Name {
        static let serverNoContextTakeover = "server_no_context_takeover"
        static let clientNoContextTakeover = "client_no_context_takeover"
        static let serverMaxWindowBits = "server_max_window_bits"
        static let clientMaxWindowBits = "client_max_window_bits"
    }

    /// If false, the server must reset its compression context for each message (section 7.1.1.1).
    package var serverTakesContextOver: Bool
    /// The maximum window size of the server's compression, as a power of two from 8 to 15 (section 7.1.2.1).
    package var serverWindowBits: Int
    /// Whether the server may limit the client's window size (section 7.1.2.2).
    package var allowsClientWindow: Bool

    package init(serverTakesContextOver: Bool = true, serverWindowBits: Int = 15, allowsClientWindow: Bool = true) {
        precondition(8...15 ~= serverWindowBits, "the window size must be from 8 to 15 bits")
        self.serverTakesContextOver = serverTakesContextOver
        self.serverWindowBits = serverWindowBits
        self.allowsClientWindow = allowsClientWindow
    }

    /// The value of `Sec-WebSocket-Extensions`.
    package var fieldValue: String {
        var text = Self.extensionName
        if allowsClientWindow { text += "; \(Name.clientMaxWindowBits)" }
        if !serverTakesContextOver { text += "; \(Name.serverNoContextTakeover)" }
        if serverWindowBits < 15 { text += "; \(Name.serverMaxWindowBits)=\(serverWindowBits)" }
        return text
    }
}
