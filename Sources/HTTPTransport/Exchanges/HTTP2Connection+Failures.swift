//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire
import LoadingModel
import NIOCore

/// What loads are told when a connection of HTTP/2 cannot go on.
extension HTTP2Connection {
    /// Why nothing can be sent: a server of TLS 1.3 refuses a client certificate, or the lack of one, after the handshake.
    var closedBefore: LoadError {
        if let violation {
            let message = "HTTP/2 with \(facts.peer) ended before the request could be sent: \(violation.message)"
            return LoadError(.badServerResponse, message, cause: violation)
        }
        let (kind, reason) = refusal ?? (.connectionLost, "the connection was closed before the request could be sent")
        return LoadError(kind, "sending the request to \(facts.peer): \(reason)", cause: transportError)
    }

    /// The request has more fields, or longer ones, than the server takes.
    func tooLarge(_ size: Int, limit: Int) -> LoadError {
        LoadError(
            .dataLengthExceedsMaximum,
            """
            sending the request to \(facts.peer): its header fields come to \(size) bytes, and the server takes \(limit) \
            (SETTINGS_MAX_HEADER_LIST_SIZE): send fewer or shorter ones, cookies included
            """)
    }

    var refusal: (LoadError.Kind, String)? {
        let shown = TLSFailure.Shown(certificate: facts.hasShownCertificate, wasAsked: facts.wasAskedForCertificate)
        return transportError.flatMap { TLSFailure.aboutClientCertificate($0, shown) }
    }

    var ended: LoadError {
        if let (kind, reason) = refusal {
            return LoadError(kind, "receiving the response from \(facts.peer): \(reason)", cause: transportError)
        }
        var message = "receiving the response from \(facts.peer): the server closed the connection"
        if let goAway, goAway.code != .noError {
            message += " (\(goAway.code.name)\(goAway.debug.isEmpty ? "" : ": " + goAway.debug))"
        }
        if let reason = transportError.flatMap(PrintableFailure.text) { message += " (\(reason))" }
        return LoadError(.connectionLost, message, cause: transportError)
    }
}
