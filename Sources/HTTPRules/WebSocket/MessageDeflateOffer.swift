//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// What a client says of compression in its handshake: an offer of permessage-deflate (RFC 7692, section 7.1).
///
/// How far back our own compression reaches, and whether it begins anew with each message, need not be offered: a client may always do
/// with less than was agreed upon.
package struct MessageDeflateOffer: Hashable, Sendable {
    package static let extensionName = "permessage-deflate"

    enum Name {
        static let serverNoContextTakeover = "server_no_context_takeover"
        static let clientNoContextTakeover = "client_no_context_takeover"
        static let serverMaxWindowBits = "server_max_window_bits"
        static let clientMaxWindowBits = "client_max_window_bits"
    }

    /// Where it is false, the server has to begin each message anew (section 7.1.1.1).
    package var serverTakesContextOver: Bool
    /// How far back the server's compression may reach at most, as a power of two from 8 to 15 (section 7.1.2.1).
    package var serverWindowBits: Int
    /// The server may say how far back ours may reach (section 7.1.2.2).
    package var allowsClientWindow: Bool

    package init(serverTakesContextOver: Bool = true, serverWindowBits: Int = 15, allowsClientWindow: Bool = true) {
        precondition(8...15 ~= serverWindowBits, "a window has from 8 to 15 bits")
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
