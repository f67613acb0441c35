// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPWire
import LoadingModel

extension TaskEvent: CodedKinds {
    init(kind: String, from coder: Coder) throws {
        switch kind {
        case "requestChanged": self = .requestChanged(try coder.required(2, "request"))
        case "waitingForConnectivity": self = .waitingForConnectivity
        case "sentHead": self = .sentHead(try coder.required(3, "requestHead"))
        case "informational": self = .informational(try coder.required(4, "responseHead"), url: try coder.required(6, "url"))
        case "sent":
            self = .sent(
                bytes: try coder.required(8, "bytes", nil, .count), total: try coder.required(10, "total", nil, .count),
                expected: try coder.defaulted(11, "expected", -1, nil, .atLeast(-1)))
        case "response": self = .response(try coder.required(5, "response"))
        case "data": self = .data(try coder.required(7, "data"))
        case "wrote":
            self = .wrote(
                bytes: try coder.required(8, "bytes", nil, .count), total: try coder.required(10, "total", nil, .count),
                expected: try coder.defaulted(11, "expected", -1, nil, .atLeast(-1)))
        case "resumed":
            self = .resumed(
                offset: try coder.required(9, "offset", nil, .count),
                expected: try coder.defaulted(11, "expected", -1, nil, .atLeast(-1))
            )
        case "resumable": self = .resumable(try coder.optional(7, "data"))
        case "becameDownload": self = .becameDownload
        case "finished": self = .finished(try coder.required(12, "outcome"))
        default: throw MessageFailure.unknownKind("event " + MessageFailure.excerpt(kind))
        }
    }

    func write(to coder: Coder) throws {
        switch self {
        case .requestChanged(let request):
            try coder.kind("requestChanged")
            try coder.required(2, "request", request)
        case .waitingForConnectivity: try coder.kind("waitingForConnectivity")
        case .sentHead(let head):
            try coder.kind("sentHead")
            try coder.required(3, "requestHead", head)
        case .informational(let head, let url):
            try coder.kind("informational")
            try coder.required(4, "responseHead", head)
            try coder.required(6, "url", url)
        case .sent(let bytes, let total, let expected):
            try coder.kind("sent")
            try coder.required(8, "bytes", bytes, .count)
            try coder.required(10, "total", total, .count)
            try coder.defaulted(11, "expected", -1, expected, .atLeast(-1))
        case .response(let response):
            try coder.kind("response")
            try coder.required(5, "response", response)
        case .data(let data):
            try coder.kind("data")
            try coder.required(7, "data", data)
        case .wrote(let bytes, let total, let expected):
            try coder.kind("wrote")
            try coder.required(8, "bytes", bytes, .count)
            try coder.required(10, "total", total, .count)
            try coder.defaulted(11, "expected", -1, expected, .atLeast(-1))
        case .resumed(let offset, let expected):
            try coder.kind("resumed")
            try coder.required(9, "offset", offset, .count)
            try coder.defaulted(11, "expected", -1, expected, .atLeast(-1))
        case .resumable(let resumeData):
            try coder.kind("resumable")
            try coder.optional(7, "data", resumeData)
        case .becameDownload: try coder.kind("becameDownload")
        case .webSocket, .stream, .becameStream: throw MessageFailure.malformed("the event cannot be sent to another process")
        case .finished(let outcome):
            try coder.kind("finished")
            try coder.required(12, "outcome", outcome)
        }
    }
}

extension TaskCommand: CodedKinds {
    init(kind: String, from coder: Coder) throws {
        switch kind {
        case "suspend": self = .suspend
        case "resume": self = .resume
        case "cancel": self = .cancel
        case "cancelProducingResumeData": self = .cancelProducingResumeData
        case "setPriority": self = .setPriority(try coder.required(2, "priority", nil, .priority))
        default: throw MessageFailure.unknownKind("command " + MessageFailure.excerpt(kind))
        }
    }

    func write(to coder: Coder) throws {
        switch self {
        case .suspend: try coder.kind("suspend")
        case .resume: try coder.kind("resume")
        case .cancel: try coder.kind("cancel")
        case .cancelProducingResumeData: try coder.kind("cancelProducingResumeData")
        case .setPriority(let priority):
            try coder.kind("setPriority")
            try coder.required(2, "priority", priority, .priority)
        case .consumed, .reportCounts, .webSocket, .stream:
            throw MessageFailure.malformed("the command cannot be sent to the daemon")
        }
    }
}

extension TaskQuestion: CodedKinds {
    init(kind: String, from coder: Coder) throws {
        switch kind {
        case "challenge": self = .challenge(try coder.required(2, "challenge"))
        case "delayedRequest": self = .delayedRequest(try coder.required(3, "request"))
        default: throw MessageFailure.unknownKind("question " + MessageFailure.excerpt(kind))
        }
    }

    func write(to coder: Coder) throws {
        switch self {
        case .challenge(let challenge):
            try coder.kind("challenge")
            try coder.required(2, "challenge", challenge)
        case .delayedRequest(let request):
            try coder.kind("delayedRequest")
            try coder.required(3, "request", request)
        default: throw MessageFailure.malformed("the question cannot be sent to another process")
        }
    }
}

extension TaskAnswer: CodedKinds {
    private enum Choice: String, Coded { case use, performDefaultHandling, cancel, rejectProtectionSpace, proceed, replace }

    init(kind: String, from coder: Coder) throws {
        guard ["credential", "delayed"].contains(kind) else {
            throw MessageFailure.unknownKind("answer " + MessageFailure.excerpt(kind))
        }
        switch (kind, try coder.required(2, "choice") as Choice) {
        case ("credential", .use): self = .credential(.useCredential(try coder.optional(3, "credential")))
        case ("credential", .performDefaultHandling): self = .credential(.performDefaultHandling)
        case ("credential", .cancel): self = .credential(.cancel)
        case ("credential", .rejectProtectionSpace): self = .credential(.rejectProtectionSpace)
        case ("delayed", .proceed): self = .delayed(.proceed)
        case ("delayed", .cancel): self = .delayed(.cancel)
        case ("delayed", .replace): self = .delayed(.replace(try coder.required(4, "request")))
        default: throw MessageFailure.malformed("an answer has a choice that its question does not offer")
        }
    }

    func write(to coder: Coder) throws {
        switch self {
        case .credential(let answer):
            try coder.kind("credential")
            switch answer {
            case .useCredential(let credential):
                try coder.required(2, "choice", Choice.use)
                try coder.optional(3, "credential", credential)
            case .performDefaultHandling: try coder.required(2, "choice", Choice.performDefaultHandling)
            case .cancel: try coder.required(2, "choice", Choice.cancel)
            case .rejectProtectionSpace: try coder.required(2, "choice", Choice.rejectProtectionSpace)
            }
        case .delayed(let disposition):
            try coder.kind("delayed")
            switch disposition {
            case .proceed: try coder.required(2, "choice", Choice.proceed)
            case .cancel: try coder.required(2, "choice", Choice.cancel)
            case .replace(let request):
                try coder.required(2, "choice", Choice.replace)
                try coder.required(4, "request", request)
            }
        default: throw MessageFailure.malformed("the answer cannot be sent to another process")
        }
    }
}
