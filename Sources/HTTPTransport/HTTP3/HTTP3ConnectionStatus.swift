// SPDX-License-Identifier: Apache-2.0

import CQUIC
import HTTPRules
import HTTPWire
import LoadingModel

/// Whether an HTTP/3 connection takes requests, whether the server has answered a request, and why the connection ended.
struct HTTP3ConnectionStatus {
    private let facts: ConnectionFacts
    /// The first stream that the server will not process, from its GOAWAY.
    var goAway: Int64?
    var failure: QUICFailure?
    private(set) var isClosing = false
    var answers = ServerAnswers()

    init(_ facts: ConnectionFacts) { self.facts = facts }

    mutating func close() { isClosing = true }

    /// The evidence for requests that the server has not processed and will not process.
    var evidence: RetryEvidence {
        requiresHTTP1 ? .requires(.http1) : .notProcessed(.init(endsConnection: true, isLast: answers.isLastFruitless))
    }

    var requiresHTTP1: Bool {
        failure?.end == CQUIC_CLOSED_BY_APPLICATION && failure?.code == HTTP3ErrorCode.versionFallback.rawValue
    }

    /// The reason why nothing can be sent.
    var closedBefore: LoadError {
        if let refusal = refusal { return refusal }
        let reason = failure.map { ": " + $0.reason } ?? ""
        return LoadError(
            failure?.isViolation == true ? .badServerResponse : .connectionLost,
            "sending the request to \(facts.peer): the connection was closed before the request could be sent\(reason)",
            cause: failure)
    }

    var ended: LoadError { ended(false) }

    /// The error of requests that got no response; `isElsewhere` tells whether the server's fault concerns another request.
    func ended(_ isElsewhere: Bool) -> LoadError {
        if let refusal = refusal { return refusal }
        let reason = failure?.reason ?? "the server closed the connection"
        return LoadError(
            failure?.isViolation == true && !isElsewhere ? .badServerResponse : .connectionLost,
            "receiving the response from \(facts.peer): \(reason)",
            cause: failure)
    }

    /// The error if the server refused the client's certificate, or requires one.
    private var refusal: LoadError? {
        failure?.refusal(wasAsked: facts.wasAskedForCertificate, presented: facts.sentClientCertificate).map {
            LoadError($0.kind, "receiving the response from \(facts.peer): \($0.reason)", cause: failure)
        }
    }
}

extension QUICFailure {
    /// Whether the server violated a protocol.
    var isViolation: Bool { end == CQUIC_VIOLATION_OF_TRANSPORT || end == CQUIC_VIOLATION_OF_APPLICATION }

    /// The number of the TLS alert that ended the connection (RFC 9001, section 4.8).
    private var alert: UInt64? {
        end == CQUIC_CLOSED_BY_TRANSPORT && 0x100...0x1FF ~= code ? code - 0x100 : nil
    }

    /// Why the connection ended, in words.
    var reason: String {
        let words = PrintableFailure.printable(text)
        let more = words.isEmpty ? "" : ": " + words
        return switch end {
        case CQUIC_CLOSED_BY_APPLICATION: "the server closed the connection (\(HTTP3ErrorCode(rawValue: code).name)\(more))"
        case CQUIC_CLOSED_BY_TRANSPORT:
            "the server closed the connection (\(alert.map { "TLS alert \($0)" } ?? "QUIC error \(code)")\(more))"
        case CQUIC_STATELESS_RESET: "the server no longer knows the connection"
        case CQUIC_IDLE_TIMEOUT: "the server was silent for too long"
        case CQUIC_HANDSHAKE_TIMEOUT: "the server did not answer"
        case CQUIC_NO_VERSION: "the server does not speak version 1 of QUIC"
        case CQUIC_NO_PROTOCOL: "the server does not speak HTTP/3"
        case CQUIC_TLS: "the TLS handshake failed\(more)"
        case CQUIC_VIOLATION_OF_TRANSPORT, CQUIC_VIOLATION_OF_APPLICATION: "the server violates the protocol\(more)"
        default: "the connection failed\(more)"
        }
    }

    /// Whether the server refused the client's certificate, or requires one; it says so after the handshake (RFC 8446, section 6.2).
    func refusal(wasAsked: Bool, presented: Bool) -> (kind: LoadError.Kind, reason: String)? {
        guard let alert else { return nil }
        if alert == 116 { return (.clientCertificateRequired, "the server requires a client certificate") }
        switch alert {
        case 42...46, 48, 49, 51:
            if presented {
                return (.clientCertificateRejected, "the server rejected the client certificate (TLS alert \(alert))")
            }
            guard wasAsked, alert == 42 else { return nil }
            return (
                .clientCertificateRequired, "the server asked for a client certificate, and refused the connection without one"
            )
        default: return nil
        }
    }
}
