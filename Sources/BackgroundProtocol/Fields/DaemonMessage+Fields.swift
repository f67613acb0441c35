// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LoadingModel

extension DaemonMessage: CodedKinds {
    init(kind: String, from coder: Coder) throws {
        switch kind {
        case "welcome": self = .welcome(version: try coder.required(2, "version"))
        case "refused":
            self = .refused(
                try coder.optional(3, "refusal").flatMap { Refusal(rawValue: $0) } ?? .malformed,
                try coder.defaulted(4, "text", ""))
        case "known": self = .known(try coder.required(5, "known"))
        case "attached": self = .attached(lastTask: try coder.defaulted(13, "task", 0, nil, .lastTask))
        case "accepted": self = .accepted(try coder.list(6, "tasks", nil, .tasks))
        case "rejected": self = .rejected(try coder.required(13, "task", nil, .task), try coder.required(14, "error"))
        case "forgotten": self = .forgotten(try coder.required(13, "task", nil, .task))
        case "event": self = .event(try coder.required(7, "event"), try coder.required(13, "task", nil, .task))
        case "question":
            self = .question(
                try coder.required(8, "question"), try coder.required(13, "task", nil, .task),
                question: try coder.required(15, "number"))
        case "renewed": self = .renewed(request: try coder.required(15, "number"))
        case "proxies": self = .proxies(try coder.list(9, "urls"), request: try coder.required(15, "number"))
        case "failed": self = .failed(try coder.required(14, "error"), request: try coder.required(15, "number"))
        case "transfers":
            self = .transfers(
                try coder.list(10, "transfers"), request: try coder.required(15, "number"),
                isLast: try coder.defaulted(16, "isLast", false))
        case "status": self = .status(try coder.required(11, "status"), request: try coder.required(15, "number"))
        case "log": self = .log(try coder.list(12, "log"), request: try coder.required(15, "number"))
        case "done": self = .done(request: try coder.required(15, "number"))
        default: throw MessageFailure.unknownKind(MessageFailure.excerpt(kind))
        }
    }

    func write(to coder: Coder) throws {
        switch self {
        case .welcome(let version):
            try coder.kind("welcome")
            try coder.required(2, "version", version)
        case .refused(let refusal, let text):
            try coder.kind("refused")
            try coder.required(3, "refusal", refusal.rawValue)
            try coder.defaulted(4, "text", "", text)
        case .known(let task):
            try coder.kind("known")
            try coder.required(5, "known", task)
        case .attached(let lastTask):
            try coder.kind("attached")
            try coder.defaulted(13, "task", 0, lastTask, .lastTask)
        case .accepted(let tasks):
            try coder.kind("accepted")
            try coder.required(6, "tasks", tasks, .tasks)
        case .rejected(let task, let error):
            try coder.kind("rejected")
            try coder.required(13, "task", task, .task)
            try coder.required(14, "error", error)
        case .forgotten(let task):
            try coder.kind("forgotten")
            try coder.required(13, "task", task, .task)
        case .event(let event, let task):
            try coder.kind("event")
            try coder.required(7, "event", event)
            try coder.required(13, "task", task, .task)
        case .question(let question, let task, let number):
            try coder.kind("question")
            try coder.required(8, "question", question)
            try coder.required(13, "task", task, .task)
            try coder.required(15, "number", number)
        case .renewed(let request):
            try coder.kind("renewed")
            try coder.required(15, "number", request)
        case .proxies(let urls, let request):
            try coder.kind("proxies")
            try coder.required(9, "urls", urls)
            try coder.required(15, "number", request)
        case .failed(let error, let request):
            try coder.kind("failed")
            try coder.required(14, "error", error)
            try coder.required(15, "number", request)
        case .transfers(let transfers, let request, let isLast):
            try coder.kind("transfers")
            try coder.list(10, "transfers", transfers)
            try coder.required(15, "number", request)
            try coder.defaulted(16, "isLast", false, isLast)
        case .status(let status, let request):
            try coder.kind("status")
            try coder.required(11, "status", status)
            try coder.required(15, "number", request)
        case .log(let lines, let request):
            try coder.kind("log")
            try coder.list(12, "log", lines)
            try coder.required(15, "number", request)
        case .done(let request):
            try coder.kind("done")
            try coder.required(15, "number", request)
        }
    }
}

extension TransferReport: CodedFields {
    static var blank: Self {
        Self(
            number: 0, program: "", session: "", task: 0, url: "", isUpload: false, state: .waiting, reason: "",
            counts: TransferCounts(), created: 0)
    }

    mutating func visit(_ coder: Coder) throws {
        try coder.required(1, "number", &number)
        try coder.defaulted(2, "program", "", &program)
        try coder.defaulted(3, "session", "", &session)
        try coder.required(4, "task", &task)
        try coder.defaulted(5, "url", "", &url)
        try coder.defaulted(6, "isUpload", false, &isUpload)
        // An unknown state is not an error.
        state = try coder.optional(7, "state", coder.isReading ? nil : state.rawValue).flatMap { State(rawValue: $0) } ?? .waiting
        try coder.defaulted(8, "reason", "", &reason)
        try coder.defaulted(9, "counts", .blank, &counts)
        try coder.required(10, "created", &created, .finite("the time of an order"))
        try coder.optional(11, "description", &description)
    }
}

extension DaemonStatus: CodedFields {
    static var blank: Self { Self() }

    mutating func visit(_ coder: Coder) throws {
        try coder.defaulted(1, "process", 0, &process)
        try coder.defaulted(2, "version", "", &version)
        try coder.defaulted(3, "socket", "", &socket)
        try coder.defaulted(4, "directory", "", &directory)
        try coder.defaulted(5, "uptime", 0, &uptime, .finite("the uptime"))
        try coder.defaulted(6, "connections", 0, &connections)
        try coder.defaulted(7, "sessions", 0, &sessions)
        try coder.defaulted(8, "running", 0, &running)
        try coder.defaulted(9, "waiting", 0, &waiting)
        try coder.defaulted(10, "paused", 0, &paused)
        try coder.defaulted(11, "ended", 0, &ended)
        try coder.defaulted(12, "residentBytes", 0, &residentBytes)
        try coder.list(13, "trouble", &trouble)
        try coder.defaulted(14, "isConnected", true, &isConnected)
        try coder.defaulted(15, "isMetered", false, &isMetered)
        try coder.defaulted(16, "hasExternalPower", true, &hasExternalPower)
        try coder.optional(17, "terms", &terms)
        try coder.defaulted(18, "isWithinHours", true, &isWithinHours)
    }
}
