// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore

/// Whether a connection takes requests, whether the server has answered a request, and why the connection ended.
struct HTTP2ConnectionStatus {
    struct GoAway {
        var lastStream: UInt32
        var code: HTTP2ErrorCode
        var debug: String
    }

    private let facts: ConnectionFacts
    private(set) var goAway: GoAway?
    private(set) var isClosing = false
    private var transportError: (any Error)?
    /// The protocol violation that ended the connection.
    private var violation: HTTP2Failure?
    var answers = ServerAnswers()

    init(_ facts: ConnectionFacts) { self.facts = facts }

    // MARK: Events

    mutating func close() { isClosing = true }

    /// Records a GOAWAY; returns whether it is the first.
    mutating func take(_ new: GoAway) throws(HTTP2Failure) -> Bool {
        guard new.lastStream <= goAway?.lastStream ?? .max else {
            throw HTTP2Failure(code: .protocolError, message: "a GOAWAY names a later stream than the previous one")
        }
        defer { goAway = new }
        return goAway == nil
    }

    mutating func take(_ error: any Error) { transportError = transportError ?? error }

    mutating func take(_ failure: HTTP2Failure) { violation = failure }

    // MARK: Consequences

    /// Whether the channel ended without an announcement from either side.
    var endsUnannounced: Bool { !isClosing && goAway == nil && facts.refusal(in: transportError) == nil }

    /// The evidence for requests that the server has not processed and will not process.
    var evidence: RetryEvidence {
        goAway?.code == .http11Required
            ? .requires(.http1) : .notProcessed(.init(endsConnection: true, isLast: answers.isLastFruitless))
    }

    /// The reason why nothing can be sent.
    var closedBefore: LoadError {
        if let violation {
            let message = "HTTP/2 with \(facts.peer) ended before the request could be sent: \(violation.message)"
            return LoadError(.badServerResponse, message, cause: violation)
        }
        return facts.closedBefore(by: transportError)
    }

    var ended: LoadError {
        if let refusal = facts.refusedResponse(by: transportError) { return refusal }
        var message = "receiving the response from \(facts.peer): the server closed the connection"
        if let goAway, goAway.code != .noError {
            message += " (\(goAway.code.name)\(goAway.debug.isEmpty ? "" : ": " + goAway.debug))"
        }
        if let reason = transportError.flatMap(PrintableFailure.text) { message += " (\(reason))" }
        return LoadError(.connectionLost, message, cause: transportError)
    }
}

extension ConnectionFacts {
    /// Returns the failure if the server rejected the client certificate, or requires one that was not sent; a TLS 1.3 server
    /// reports that after the handshake.
    func refusal(in error: (any Error)?) -> (LoadError.Kind, String)? {
        let shown = TLSFailure.Shown(certificate: sentClientCertificate, wasAsked: wasAskedForCertificate)
        return error.flatMap { TLSFailure.clientCertificateFailure($0, shown) }
    }

    /// Returns the error of a load that got no response for such a reason.
    func refusedResponse(by error: (any Error)?) -> LoadError? {
        guard let (kind, reason) = refusal(in: error) else { return nil }
        var failure = LoadError(kind, "receiving the response from \(peer): \(reason)", cause: error)
        failure.asksToRenegotiate = error.map(TLSFailure.isRenegotiation) ?? false
        return failure
    }

    /// Returns the reason why nothing can be sent.
    func closedBefore(by error: (any Error)?) -> LoadError {
        let (kind, reason) = refusal(in: error) ?? (.connectionLost, "the connection was closed before the request could be sent")
        return LoadError(kind, "sending the request to \(peer): \(reason)", cause: error)
    }
}
