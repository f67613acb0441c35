//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import HTTPWire
import LoadingModel

struct WireEvent: WireValue {
    enum Kind: String {
        case requestChanged, waitingForConnectivity, sentHead, informational, sent, response, data, wrote, resumed, resumable
        case becameDownload, finished
    }

    var kind: String
    var request: WireRequest?
    var requestHead: WireRequestHead?
    var responseHead: WireResponseHead?
    var response: WireResponse?
    var url: String?
    var data: Data?
    var bytes: Int64?
    var total: Int64?
    var expected: Int64?
    var offset: Int64?
    var outcome: WireOutcome?

    init(_ event: TaskEvent) throws {
        let kind: Kind
        switch event {
        case .requestChanged(let request):
            kind = .requestChanged
            self.request = try WireRequest(request)
        case .waitingForConnectivity: kind = .waitingForConnectivity
        case .sentHead(let head):
            kind = .sentHead
            requestHead = WireRequestHead(head)
        case .informational(let head, let url):
            kind = .informational
            responseHead = WireResponseHead(head)
            self.url = url.absoluteString
        case .sent(let bytes, let total, let expected):
            kind = .sent
            (self.bytes, self.total, self.expected) = (bytes, total, expected.unless(-1))
        case .response(let response):
            kind = .response
            self.response = try WireResponse(response)
        case .data(let data):
            kind = .data
            self.data = data
        case .wrote(let bytes, let total, let expected):
            kind = .wrote
            (self.bytes, self.total, self.expected) = (bytes, total, expected.unless(-1))
        case .resumed(let offset, let expected):
            kind = .resumed
            (self.offset, self.expected) = (offset, expected.unless(-1))
        case .resumable(let resumeData):
            kind = .resumable
            data = resumeData
        case .becameDownload: kind = .becameDownload
        case .finished(let outcome):
            kind = .finished
            self.outcome = try WireOutcome(outcome)
        }
        self.kind = kind.rawValue
    }

    func model() throws -> TaskEvent {
        guard let kind = Kind(rawValue: kind) else { throw MessageFailure.unknownKind("event " + MessageFailure.excerpt(kind)) }
        let expected = max(-1, expected ?? -1)
        switch kind {
        case .requestChanged: return .requestChanged(try Wire.need(request, "a request").model())
        case .waitingForConnectivity: return .waitingForConnectivity
        case .sentHead: return .sentHead(try Wire.need(requestHead, "a head").head())
        case .informational:
            return .informational(try Wire.need(responseHead, "a head").head(), url: try Wire.url(url, "a response's URL"))
        case .sent: return .sent(bytes: try Self.count(bytes), total: try Self.count(total), expected: expected)
        case .response: return .response(try Wire.need(response, "a response").model())
        case .data: return .data(try Wire.need(data, "data"))
        case .wrote: return .wrote(bytes: try Self.count(bytes), total: try Self.count(total), expected: expected)
        case .resumed: return .resumed(offset: try Self.count(offset), expected: expected)
        case .resumable: return .resumable(data)
        case .becameDownload: return .becameDownload
        case .finished: return .finished(try Wire.need(outcome, "an outcome").model())
        }
    }

    private static func count(_ bytes: Int64?) throws -> Int64 {
        let bytes = try Wire.need(bytes, "a count")
        try Wire.check(bytes >= 0, "a count is less than nothing")
        return bytes
    }
}

struct WireCommand: WireValue {
    enum Kind: String { case suspend, resume, cancel, cancelProducingResumeData, setPriority }

    var kind: String
    var priority: Float?

    init(_ command: TaskCommand) throws {
        let kind: Kind
        switch command {
        case .suspend: kind = .suspend
        case .resume: kind = .resume
        case .cancel: kind = .cancel
        case .cancelProducingResumeData: kind = .cancelProducingResumeData
        case .setPriority(let priority):
            kind = .setPriority
            self.priority = WireOrder.priority(priority) ?? WireOrder.usualPriority
        case .consumed, .tellCounts: throw MessageFailure.malformed("a command is not for the daemon")
        }
        self.kind = kind.rawValue
    }

    func model() throws -> TaskCommand {
        guard let kind = Kind(rawValue: kind) else { throw MessageFailure.unknownKind("command " + MessageFailure.excerpt(kind)) }
        switch kind {
        case .suspend: return .suspend
        case .resume: return .resume
        case .cancel: return .cancel
        case .cancelProducingResumeData: return .cancelProducingResumeData
        case .setPriority:
            let priority = WireOrder.priority(try Wire.need(priority, "a priority"))
            return .setPriority(priority ?? WireOrder.usualPriority)
        }
    }
}

struct WireQuestion: WireValue {
    enum Kind: String { case challenge, delayedRequest }

    var kind: String
    var challenge: WireChallenge?
    var request: WireRequest?

    init(_ question: TaskQuestion) throws {
        switch question {
        case .challenge(let challenge):
            kind = Kind.challenge.rawValue
            self.challenge = try WireChallenge(challenge)
        case .delayedRequest(let request):
            kind = Kind.delayedRequest.rawValue
            self.request = try WireRequest(request)
        default: throw MessageFailure.malformed("a question is not for another process")
        }
    }

    func model() throws -> TaskQuestion {
        switch Kind(rawValue: kind) {
        case .challenge: return .challenge(try Wire.need(challenge, "a challenge").model())
        case .delayedRequest: return .delayedRequest(try Wire.need(request, "a request").model())
        case nil: throw MessageFailure.unknownKind("question " + MessageFailure.excerpt(kind))
        }
    }
}

struct WireAnswer: WireValue {
    enum Kind: String { case credential, delayed }
    enum Choice: String { case use, performDefaultHandling, cancel, rejectProtectionSpace, proceed, replace }

    var kind: String
    var choice: String
    var credential: WireCredential?
    var request: WireRequest?

    init(_ answer: TaskAnswer) throws {
        let choice: Choice
        switch answer {
        case .credential(let answer):
            kind = Kind.credential.rawValue
            switch answer {
            case .useCredential(let credential):
                choice = .use
                self.credential = credential.map { WireCredential($0) }
            case .performDefaultHandling: choice = .performDefaultHandling
            case .cancel: choice = .cancel
            case .rejectProtectionSpace: choice = .rejectProtectionSpace
            }
        case .delayed(let disposition):
            kind = Kind.delayed.rawValue
            switch disposition {
            case .proceed: choice = .proceed
            case .cancel: choice = .cancel
            case .replace(let request):
                choice = .replace
                self.request = try WireRequest(request)
            }
        default: throw MessageFailure.malformed("an answer is not for another process")
        }
        self.choice = choice.rawValue
    }

    func model() throws -> TaskAnswer {
        guard let kind = Kind(rawValue: kind) else { throw MessageFailure.unknownKind("answer " + MessageFailure.excerpt(kind)) }
        switch (kind, try Wire.need(Choice(rawValue: choice), "an answer's choice")) {
        case (.credential, .use): return .credential(.useCredential(try credential?.model()))
        case (.credential, .performDefaultHandling): return .credential(.performDefaultHandling)
        case (.credential, .cancel): return .credential(.cancel)
        case (.credential, .rejectProtectionSpace): return .credential(.rejectProtectionSpace)
        case (.delayed, .proceed): return .delayed(.proceed)
        case (.delayed, .cancel): return .delayed(.cancel)
        case (.delayed, .replace): return .delayed(.replace(try Wire.need(request, "a request").model()))
        default: throw MessageFailure.malformed("an answer's choice is none of its kind")
        }
    }
}
