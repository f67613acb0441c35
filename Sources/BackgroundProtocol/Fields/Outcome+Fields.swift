// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPWire
import LoadingModel

extension TaskOutcome: Coded {
    static func coded(_ value: TaskOutcome?, _ coder: Coder) throws -> TaskOutcome {
        try coder.object {
            var (body, error): (Body?, LoadError?) =
                switch value?.result {
                case .success(.none), nil: (nil, nil)
                case .success(let body): (body, nil)
                case .failure(let error): (nil, error)
                }
            try coder.optional(1, "body", &body)
            try coder.optional(2, "error", &error)
            return TaskOutcome(
                result: error.map { .failure($0) } ?? .success(body ?? .none),
                response: try coder.optional(3, "response", value?.response),
                timelines: try coder.list(4, "timelines", value?.timelines, .list("the timelines")),
                redirectCount: try coder.defaulted(5, "redirectCount", 0, value?.redirectCount, .atLeast(0)),
                sentBodyBytes: try coder.defaulted(6, "sentBodyBytes", 0, value?.sentBodyBytes, .atLeast(0)),
                receivedBodyBytes: try coder.defaulted(7, "receivedBodyBytes", 0, value?.receivedBodyBytes, .atLeast(0)))
        }
    }
}

extension TaskOutcome.Body: CodedKinds {
    init(kind: String, from coder: Coder) throws {
        switch kind {
        case "data": self = .collected(try coder.required(2, "data"))
        case "file": self = .file(path: try coder.required(3, "path", nil, .path("a download's file")))
        default: throw coder.fault("has an unknown kind")
        }
    }

    func write(to coder: Coder) throws {
        switch self {
        case .none: break
        case .collected(let data):
            try coder.kind("data")
            try coder.required(2, "data", data)
        case .file(let path):
            try coder.kind("file")
            try coder.required(3, "path", path, .path("a download's file"))
        }
    }
}

extension LoadError: Coded {
    private static let names = Dictionary(uniqueKeysWithValues: Kind.allCases.map { ($0, String(describing: $0)) })
    private static let kinds = Dictionary(uniqueKeysWithValues: names.map { ($1, $0) })

    static func coded(_ value: LoadError?, _ coder: Coder) throws -> LoadError {
        try coder.object {
            let kind = try coder.defaulted(1, "kind", "unknown", value.flatMap { names[$0.kind] })
            var error = LoadError(kinds[kind] ?? .unknown, try coder.defaulted(2, "message", "", value?.message))
            let cause = try coder.optional(
                3, "cause", value?.cause.map { cut(String(describing: $0)) }, .text("a cause", limit: Limits.cause))
            error.cause = cause.map { DescribedError($0) }
            error.url = try coder.optional(4, "url", value?.url)
            error.resumeData = try coder.optional(5, "resumeData", value?.resumeData)
            error.peerTrust = try coder.list(6, "peerTrust", value?.peerTrust, .list("a chain"))
            error.isProxyError = try coder.defaulted(7, "isOfProxy", false, value?.isProxyError)
            error.isUnansweredLookup = try coder.defaulted(8, "isForWantOfAnswer", false, value?.isUnansweredLookup)
            error.networkObjection = try coder.optional(9, "networkObjection", value?.networkObjection?.rawValue)
                .flatMap(NetworkObjection.init(rawValue:))
            error.cancelReason = try coder.optional(10, "cancelReason", value?.cancelReason?.rawValue)
                .flatMap(CancelReason.init(rawValue:))
            error.uploadResumeData = try coder.optional(11, "uploadResumeData", value?.uploadResumeData)
            return error
        }
    }

    /// Cuts the text to the limit, at a character boundary.
    private static func cut(_ text: String) -> String {
        guard text.utf8.count > Limits.cause else { return text }
        var end = text.utf8.index(text.utf8.startIndex, offsetBy: Limits.cause)
        while end > text.startIndex, end.samePosition(in: text.unicodeScalars) == nil { end = text.utf8.index(before: end) }
        return String(text[..<end])
    }
}

extension LoadResponse: Coded {
    private struct Local: CodedFields {
        static var blank: Self { Self() }
        var mimeType: String?
        var textEncoding: String?

        mutating func visit(_ coder: Coder) throws {
            try coder.optional(1, "mimeType", &mimeType)
            try coder.optional(2, "textEncoding", &textEncoding)
        }
    }

    static func coded(_ value: LoadResponse?, _ coder: Coder) throws -> LoadResponse {
        try coder.object {
            let url = try coder.required(1, "url", value?.url)
            var local: Local?
            switch value?.kind {
            case .http, nil: break
            case .local(let mimeType, let textEncoding): local = Local(mimeType: mimeType, textEncoding: textEncoding)
            // Background sessions only load http and https.
            case .ftp: throw MessageFailure.malformed("an FTP server's response cannot be sent to another process")
            case .application: throw MessageFailure.malformed("an app's own response cannot be sent to another process")
            }
            let kind: Kind
            if let head = try coder.optional(2, "http", value?.head) {
                kind = .http(head)
            } else {
                let local = try coder.required(3, "local", local)
                kind = .local(mimeType: local.mimeType, textEncoding: local.textEncoding)
            }
            return LoadResponse(
                url: url, kind: kind,
                expectedLength: try coder.defaulted(4, "expectedLength", -1, value?.expectedLength, .atLeast(-1)))
        }
    }
}

extension ResponseHead: CodedFields {
    static var blank: Self { Self(status: 0) }

    mutating func visit(_ coder: Coder) throws {
        let version = "a response's HTTP version is unknown"
        try coder.defaulted(1, "majorVersion", 1, &majorVersion, .holds(version) { 1...9 ~= $0 })
        try coder.defaulted(2, "minorVersion", 1, &minorVersion, .holds(version) { 0...9 ~= $0 })
        try coder.required(3, "status", &status, .holds("a status has more than three digits") { 0...999 ~= $0 })
        try coder.defaulted(4, "reason", "", &reason)
        try coder.defaulted(5, "fields", HeaderBlock(), &headers)
    }
}

extension RequestHead: CodedFields {
    static var blank: Self { Self(method: "", target: "", headers: HeaderBlock()) }

    mutating func visit(_ coder: Coder) throws {
        try coder.required(1, "method", &method)
        try coder.required(2, "target", &target)
        try coder.defaulted(3, "fields", HeaderBlock(), &headers)
        try coder.defaulted(4, "majorVersion", 1, &majorVersion, .holds("a request's HTTP version is unknown") { 1...9 ~= $0 })
    }
}

extension TransactionTimeline.Source: Coded {
    /// Decodes a source that this version does not know as `unknown`.
    static func coded(_ value: Self?, _ coder: Coder) throws -> Self {
        let text = try coder.text(value.map { $0 == .localCache ? "localCache" : "unknown" })
        return text == "localCache" ? .localCache : .unknown
    }
}

extension TransactionTimeline: CodedFields {
    static var blank: Self { Self(request: .blank) }

    mutating func visit(_ coder: Coder) throws {
        let time = Rule.finite("a time")
        try coder.required(1, "request", &request)
        try coder.optional(2, "response", &response)
        try coder.defaulted(3, "source", .network, &source)
        try coder.defaulted(4, "fetchStart", 0, &fetchStart, time)
        try coder.optional(5, "domainLookupStart", &domainLookupStart, time)
        try coder.optional(6, "domainLookupEnd", &domainLookupEnd, time)
        try coder.optional(7, "connectStart", &connectStart, time)
        try coder.optional(8, "secureConnectionStart", &secureConnectionStart, time)
        try coder.optional(9, "secureConnectionEnd", &secureConnectionEnd, time)
        try coder.optional(10, "connectEnd", &connectEnd, time)
        try coder.optional(11, "requestStart", &requestStart, time)
        try coder.optional(12, "requestEnd", &requestEnd, time)
        try coder.optional(13, "responseStart", &responseStart, time)
        try coder.optional(14, "responseEnd", &responseEnd, time)
        try coder.optional(15, "networkProtocol", &networkProtocol)
        try coder.defaulted(16, "isReusedConnection", false, &isReusedConnection)
        try coder.defaulted(17, "isProxyConnection", false, &isProxyConnection)
        try coder.defaulted(18, "requestHeaderBytes", 0, &requestHeaderBytes)
        try coder.defaulted(19, "requestBodyBytes", 0, &requestBodyBytes)
        try coder.defaulted(20, "requestBodyBytesBeforeEncoding", 0, &requestBodyBytesBeforeEncoding)
        try coder.defaulted(21, "responseHeaderBytes", 0, &responseHeaderBytes)
        try coder.defaulted(22, "responseBodyBytes", 0, &responseBodyBytes)
        try coder.defaulted(23, "responseBodyBytesAfterDecoding", 0, &responseBodyBytesAfterDecoding)
        try coder.optional(24, "connection", &connection)
    }
}

extension ConnectionFacts: Coded {
    static func coded(_ value: ConnectionFacts?, _ coder: Coder) throws -> ConnectionFacts {
        let time = Rule.finite("a time")
        return try coder.object {
            ConnectionFacts(
                localAddress: try coder.optional(1, "localAddress", value?.localAddress),
                localPort: try coder.optional(2, "localPort", value?.localPort),
                remoteAddress: try coder.optional(3, "remoteAddress", value?.remoteAddress),
                remotePort: try coder.optional(4, "remotePort", value?.remotePort),
                tlsVersion: try coder.optional(5, "tlsVersion", value?.tlsVersion),
                tlsCipherSuite: try coder.optional(6, "tlsCipherSuite", value?.tlsCipherSuite),
                domainLookupStart: try coder.optional(7, "domainLookupStart", value?.domainLookupStart, time),
                domainLookupEnd: try coder.optional(8, "domainLookupEnd", value?.domainLookupEnd, time),
                connectStart: try coder.optional(9, "connectStart", value?.connectStart, time),
                secureConnectionStart: try coder.optional(10, "secureConnectionStart", value?.secureConnectionStart, time),
                secureConnectionEnd: try coder.optional(11, "secureConnectionEnd", value?.secureConnectionEnd, time),
                connectEnd: try coder.optional(12, "connectEnd", value?.connectEnd, time),
                wasAskedForCertificate: try coder.defaulted(13, "wasAskedForCertificate", false, value?.wasAskedForCertificate),
                sentClientCertificate: try coder.defaulted(14, "hasShownCertificate", false, value?.sentClientCertificate),
                isVerified: try coder.defaulted(15, "isVerified", false, value?.isVerified),
                serverCertificate: try coder.optional(16, "serverCertificate", value?.serverCertificate),
                isToProxy: try coder.defaulted(17, "isToProxy", false, value?.isToProxy),
                isMultipath: try coder.defaulted(18, "isMultipath", false, value?.isMultipath),
                isForwarded: try coder.defaulted(19, "isForwarded", false, value?.isForwarded),
                interface: try coder.optional(20, "interface", value?.interface),
                usedNameServers: try coder.defaulted(21, "askedNameServers", false, value?.usedNameServers),
                // Omitted if the TLS version implies it.
                isInTLS: try coder.optional(
                    22, "isInTLS", value.flatMap { $0.isInTLS == ($0.tlsVersion != nil) ? nil : $0.isInTLS }),
                applicationProtocol: try coder.optional(
                    23, "applicationProtocol", value?.applicationProtocol, .plain("a protocol")))
        }
    }
}

extension NetworkPath.Interface: CodedFields {
    static var blank: Self { .unknown }

    mutating func visit(_ coder: Coder) throws {
        try coder.required(1, "name", &name)
        try coder.required(2, "index", &index)
        kind = try coder.optional(3, "kind", coder.isReading ? nil : kind.rawValue).flatMap(Kind.init(rawValue:)) ?? .other
        try coder.defaulted(4, "isExpensive", false, &isExpensive)
        try coder.defaulted(5, "isConstrained", false, &isConstrained)
        try coder.defaulted(6, "isUltraConstrained", false, &isUltraConstrained)
        try coder.list(7, "addresses", &addresses)
    }
}
