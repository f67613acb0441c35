// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LoadingModel

extension ClientMessage: CodedKinds {
    init(kind: String, from coder: Coder) throws {
        switch kind {
        case "hello": self = .hello(version: try coder.required(2, "version"), role: try coder.required(3, "role"))
        case "attach": self = .attach(try coder.required(4, "attachment"))
        case "submit": self = .submit(try coder.required(5, "order"))
        case "command": self = .command(try coder.required(6, "command"), try coder.required(12, "task", nil, .task))
        case "note": self = .note(try coder.optional(7, "notes") ?? .blank, try coder.required(12, "task", nil, .task))
        case "answer":
            self = .answer(
                try coder.required(8, "answer"), try coder.optional(12, "task", nil, .task),
                question: try coder.required(13, "number"))
        case "told": self = .told(try coder.required(12, "task", nil, .task))
        case "eventsHandled": self = .eventsHandled
        case "invalidate": self = .invalidate
        case "renew": self = .renew(try coder.required(9, "renewal"), request: try coder.required(13, "number"))
        case "proxies": self = .proxies(try coder.required(10, "url"), request: try coder.required(13, "number"))
        case "manage": self = .manage(try coder.required(11, "manage"), request: try coder.required(13, "number"))
        default: throw MessageFailure.unknownKind(MessageFailure.excerpt(kind))
        }
    }

    func write(to coder: Coder) throws {
        switch self {
        case .hello(let version, let role):
            try coder.kind("hello")
            try coder.required(2, "version", version)
            try coder.required(3, "role", role)
        case .attach(let attachment):
            try coder.kind("attach")
            try coder.required(4, "attachment", attachment)
        case .submit(let order):
            try coder.kind("submit")
            try coder.required(5, "order", order)
        case .command(let command, let task):
            try coder.kind("command")
            try coder.required(6, "command", command)
            try coder.required(12, "task", task, .task)
        case .note(let notes, let task):
            try coder.kind("note")
            try coder.defaulted(7, "notes", .blank, notes)
            try coder.required(12, "task", task, .task)
        case .answer(let answer, let task, let question):
            try coder.kind("answer")
            try coder.required(8, "answer", answer)
            try coder.optional(12, "task", task, .task)
            try coder.required(13, "number", question)
        case .told(let task):
            try coder.kind("told")
            try coder.required(12, "task", task, .task)
        case .eventsHandled: try coder.kind("eventsHandled")
        case .invalidate: try coder.kind("invalidate")
        case .renew(let renewal, let request):
            try coder.kind("renew")
            try coder.required(9, "renewal", renewal)
            try coder.required(13, "number", request)
        case .proxies(let url, let request):
            try coder.kind("proxies")
            try coder.required(10, "url", url)
            try coder.required(13, "number", request)
        case .manage(let manage, let request):
            try coder.kind("manage")
            try coder.required(11, "manage", manage)
            try coder.required(13, "number", request)
        }
    }
}

extension ClientMessage.Role: Coded {}

extension Renewal: Coded {
    static func coded(_ value: Renewal?, _ coder: Coder) throws -> Renewal {
        try coder.named(["reset": .reset, "flush": .flush], value)
    }
}

extension ClientMessage.Attachment: CodedFields {
    static var blank: Self { Self(identifier: "", settings: BackgroundSettings(), takesEvents: false, wasLaunched: false) }

    mutating func visit(_ coder: Coder) throws {
        try coder.required(1, "identifier", &identifier, .plain("a session's identifier"))
        try coder.required(2, "settings", &settings)
        try coder.defaulted(3, "takesEvents", false, &takesEvents)
        try coder.defaulted(4, "wasLaunched", false, &wasLaunched)
        try coder.list(5, "told", &told, .tasks)
    }
}

extension ManagerRequest: CodedKinds {
    init(kind: String, from coder: Coder) throws {
        switch kind {
        case "list": self = .list
        case "status": self = .status
        case "pause": self = .pause(try coder.required(2, "transfer"))
        case "resume": self = .resume(try coder.required(2, "transfer"))
        case "cancel": self = .cancel(try coder.required(2, "transfer"))
        case "quit": self = .quit(program: try coder.required(3, "program", nil, .plain("a program")))
        case "log": self = .log
        case "watch": self = .watch
        case "handOver": self = .handOver
        case "setTerms": self = .setTerms(try coder.required(4, "terms"))
        default: throw MessageFailure.unknownKind("manage " + MessageFailure.excerpt(kind))
        }
    }

    func write(to coder: Coder) throws {
        switch self {
        case .list: try coder.kind("list")
        case .status: try coder.kind("status")
        case .pause(let number):
            try coder.kind("pause")
            try coder.required(2, "transfer", number)
        case .resume(let number):
            try coder.kind("resume")
            try coder.required(2, "transfer", number)
        case .cancel(let number):
            try coder.kind("cancel")
            try coder.required(2, "transfer", number)
        case .quit(let program):
            try coder.kind("quit")
            try coder.required(3, "program", program, .plain("a program"))
        case .log: try coder.kind("log")
        case .watch: try coder.kind("watch")
        case .handOver: try coder.kind("handOver")
        case .setTerms(let terms):
            try coder.kind("setTerms")
            try coder.required(4, "terms", terms)
        }
    }
}
