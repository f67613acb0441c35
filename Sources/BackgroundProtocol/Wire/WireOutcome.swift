//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import LoadingModel

struct WireOutcome: WireValue {
    var body: WireBody?
    var error: WireError?
    var response: WireResponse?
    var timelines: [WireTimeline]?
    var redirectCount: Int?
    var sentBodyBytes: Int64?
    var receivedBodyBytes: Int64?

    init(_ outcome: TaskOutcome) throws {
        switch outcome.result {
        case .success(let body): self.body = WireBody(body)
        case .failure(let error): self.error = WireError(error)
        }
        response = try outcome.response.map { try WireResponse($0) }
        timelines = try outcome.timelines.map { try WireTimeline($0) }.unlessEmpty
        redirectCount = outcome.redirectCount.unless(0)
        sentBodyBytes = outcome.sentBodyBytes.unless(0)
        receivedBodyBytes = outcome.receivedBodyBytes.unless(0)
    }

    func model() throws -> TaskOutcome {
        let result: Result<TaskOutcome.Body, LoadError>
        if let error { result = .failure(try error.model()) } else { result = .success(try body?.outcomeBody() ?? .none) }
        return TaskOutcome(
            result: result,
            response: try response?.model(),
            timelines: try Wire.list(timelines, "the timelines").map { try $0.model() },
            redirectCount: max(0, redirectCount ?? 0),
            sentBodyBytes: max(0, sentBodyBytes ?? 0),
            receivedBodyBytes: max(0, receivedBodyBytes ?? 0)
        )
    }
}

struct WireError: WireValue {
    var kind: String?
    var message: String?
    var cause: String?
    var url: String?
    var resumeData: Data?
    var peerTrust: [Data]?
    var isOfProxy: Bool?
    var isForWantOfAnswer: Bool?
    var networkObjection: Int?
    var cancelReason: Int?

    private static let names = Dictionary(uniqueKeysWithValues: LoadError.Kind.allCases.map { ($0, String(describing: $0)) })
    private static let kinds = Dictionary(uniqueKeysWithValues: names.map { ($1, $0) })

    init(_ error: LoadError) {
        kind = Self.names[error.kind]?.unless("unknown")
        message = error.message.unless("")
        cause = error.cause.map { Self.cut(String(describing: $0)) }
        url = error.url?.absoluteString
        resumeData = error.resumeData
        peerTrust = error.peerTrust.unlessEmpty
        isOfProxy = error.isOfProxy.unless(false)
        isForWantOfAnswer = error.isForWantOfAnswer.unless(false)
        networkObjection = error.networkObjection?.rawValue
        cancelReason = error.cancelReason?.rawValue
    }

    /// Whole characters, within the limit.
    private static func cut(_ text: String) -> String {
        guard text.utf8.count > Wire.causeLimit else { return text }
        var end = text.utf8.index(text.utf8.startIndex, offsetBy: Wire.causeLimit)
        while end > text.startIndex, end.samePosition(in: text.unicodeScalars) == nil { end = text.utf8.index(before: end) }
        return String(text[..<end])
    }

    func model() throws -> LoadError {
        var error = LoadError(kind.flatMap { Self.kinds[$0] } ?? .unknown, message ?? "")
        if let cause { error.cause = DescribedError(try Wire.text(cause, "a cause", limit: Wire.causeLimit)) }
        if let url { error.url = try Wire.url(url, "an error's URL") }
        if let resumeData { error.resumeData = resumeData }
        if let peerTrust { error.peerTrust = try Wire.list(peerTrust, "a chain") }
        if let isOfProxy { error.isOfProxy = isOfProxy }
        if let isForWantOfAnswer { error.isForWantOfAnswer = isForWantOfAnswer }
        if let networkObjection { error.networkObjection = LoadError.NetworkObjection(rawValue: networkObjection) }
        if let cancelReason { error.cancelReason = LoadError.CancelReason(rawValue: cancelReason) }
        return error
    }
}
