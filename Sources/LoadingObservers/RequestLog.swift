// SPDX-License-Identifier: Apache-2.0

#if Logging
import HTTPRules
import LoadingModel
import Logging

/// Writes the log messages of one request, without header fields and body, and with the URL redacted by ``RedactedURL``.
struct RequestLog {
    private let logger: Logger
    private let cause: ObservedRequest.Cause

    /// Makes the log of a request; nil if the logger's level excludes all messages.
    init?(_ request: ObservedRequest, _ logger: Logger) {
        guard logger.logLevel <= .debug else { return nil }
        var logger = logger
        cause = request.cause
        logger[metadataKey: "task"] = "\(request.task)"
        logger[metadataKey: "http.request.method"] = "\(request.method)"
        logger[metadataKey: "url.full"] = "\(RedactedURL.text(request.url))"
        if request.resendCount > 0 { logger[metadataKey: "http.request.resend_count"] = "\(request.resendCount)" }
        self.logger = logger
    }

    func began() {
        let message: Logger.Message =
            switch cause {
            case .first: "request began"
            case .redirect: "redirect followed"
            case .authentication: "request sent again with a credential"
            case .failure: "request retried"
            case .resumption: "upload resumed"
            case .answer: "request sent again"
            }
        logger.debug(message, source: Self.source)
    }

    func answered(_ response: ObservedResponse) {
        logger.debug("response began", metadata: metadata(of: response), source: Self.source)
    }

    func ended(_ end: ObservedEnd) {
        if let failure = end.failure {
            var metadata = metadata(of: end.response)
            metadata["error.type"] = "\(RequestLabels.name(of: failure.kind))"
            metadata["duration"] = "\(Double(end.duration) / 1e9)"
            return logger.debug("request failed", metadata: metadata, source: Self.source)
        }
        guard logger.logLevel <= .trace else { return }
        var metadata = metadata(of: end.response)
        metadata["http.request.body.size"] = "\(end.sentBodyBytes)"
        metadata["http.response.body.size"] = "\(end.receivedBodyBytes)"
        metadata["duration"] = "\(Double(end.duration) / 1e9)"
        logger.trace("request ended", metadata: metadata, source: Self.source)
    }

    fileprivate static let source = "URLLoading"

    private func metadata(of response: ObservedResponse) -> Logger.Metadata {
        var metadata: Logger.Metadata = [:]
        if let status = response.status { metadata["http.response.status_code"] = "\(status)" }
        if let version = response.version { metadata["network.protocol.version"] = "\(version)" }
        if let transport = RequestLabels.transport(response) { metadata["network.transport"] = "\(transport)" }
        if let connection = response.connection { metadata.note(connection) }
        return metadata
    }
}

extension Logger {
    /// Logs an event of a connection.
    func log(_ message: Logger.Message, _ connection: ObservedConnection) {
        guard logLevel <= .trace else { return }
        var metadata: Logger.Metadata = ["server.address": "\(connection.host)", "server.port": "\(connection.port)"]
        metadata.note(connection.facts)
        trace(message, metadata: metadata, source: RequestLog.source)
    }
}

extension Logger.Metadata {
    fileprivate mutating func note(_ connection: ConnectionFacts) {
        if let address = connection.remoteAddress { self["network.peer.address"] = "\(address)" }
        if let port = connection.remotePort { self["network.peer.port"] = "\(port)" }
    }
}
#endif
