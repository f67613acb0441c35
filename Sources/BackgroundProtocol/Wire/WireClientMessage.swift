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

struct WireClientMessage: WireValue {
    enum Kind: String {
        case hello, attach, submit, command, note, answer, told, eventsHandled, invalidate, renew, proxies, manage
    }

    var kind: String
    var version: Int?
    var role: String?
    var attachment: WireAttachment?
    var order: WireOrder?
    var task: Int?
    var command: WireCommand?
    var notes: WireNotes?
    var answer: WireAnswer?
    var number: Int?
    var renewal: String?
    var url: String?
    var manage: WireManagerRequest?

    init(_ message: ClientMessage) throws {
        let kind: Kind
        switch message {
        case .hello(let version, let role):
            kind = .hello
            (self.version, self.role) = (version, role.rawValue)
        case .attach(let attachment):
            kind = .attach
            self.attachment = try WireAttachment(attachment)
        case .submit(let order):
            kind = .submit
            self.order = try WireOrder(order)
        case .command(let command, let task):
            kind = .command
            (self.command, self.task) = (try WireCommand(command), task)
        case .note(let notes, let task):
            kind = .note
            (self.notes, self.task) = (WireNotes(notes), task)
        case .answer(let answer, let task, let question):
            kind = .answer
            (self.answer, self.task, number) = (try WireAnswer(answer), task, question)
        case .told(let task):
            kind = .told
            self.task = task
        case .eventsHandled: kind = .eventsHandled
        case .invalidate: kind = .invalidate
        case .renew(let renewal, let request):
            kind = .renew
            (self.renewal, number) = (WireRenewal(renewal).rawValue, request)
        case .proxies(let url, let request):
            kind = .proxies
            (self.url, number) = (url.absoluteString, request)
        case .manage(let manage, let request):
            kind = .manage
            (self.manage, number) = (WireManagerRequest(manage), request)
        }
        self.kind = kind.rawValue
    }

    func model() throws -> ClientMessage {
        guard let kind = Kind(rawValue: kind) else { throw MessageFailure.unknownKind(MessageFailure.excerpt(kind)) }
        switch kind {
        case .hello:
            let role = ClientMessage.Role(rawValue: try Wire.need(role, "a role"))
            return .hello(version: try Wire.need(version, "a version"), role: try Wire.need(role, "a role"))
        case .attach: return .attach(try Wire.need(attachment, "an attachment").model())
        case .submit: return .submit(try Wire.need(order, "an order").model())
        case .command: return .command(try Wire.need(command, "a command").model(), try Wire.task(task))
        case .note: return .note(try notes?.notes() ?? BackgroundOrder.Notes(), try Wire.task(task))
        case .answer:
            return .answer(
                try Wire.need(answer, "an answer").model(), try task.map { try Wire.task($0) },
                question: try Wire.need(number, "a question's number"))
        case .told: return .told(try Wire.task(task))
        case .eventsHandled: return .eventsHandled
        case .invalidate: return .invalidate
        case .renew:
            let renewal = WireRenewal(rawValue: try Wire.need(renewal, "a renewal"))
            return .renew(try Wire.need(renewal, "a renewal").renewal, request: try request())
        case .proxies: return .proxies(try Wire.url(url, "a URL"), request: try request())
        case .manage: return .manage(try Wire.need(manage, "a request").model(), request: try request())
        }
    }

    private func request() throws -> Int { try Wire.need(number, "a request's number") }

    static func unknownKind(in data: Data) -> String? {
        guard let kinds = try? JSONDecoder().decode(WireKinds.self, from: data) else { return nil }
        guard let kind = Kind(rawValue: kinds.kind) else { return kinds.kind }
        return switch kind {
        case .command: kinds.command?.kind.flatMap { WireCommand.Kind(rawValue: $0) == nil ? "command \($0)" : nil }
        case .answer: kinds.answer?.kind.flatMap { WireAnswer.Kind(rawValue: $0) == nil ? "answer \($0)" : nil }
        case .manage: kinds.manage?.kind.flatMap { WireManagerRequest.Kind(rawValue: $0) == nil ? "manage \($0)" : nil }
        default: nil
        }
    }
}

enum WireRenewal: String {
    case reset, flush

    init(_ renewal: Renewal) {
        switch renewal {
        case .reset: self = .reset
        case .flush: self = .flush
        }
    }

    var renewal: Renewal {
        switch self {
        case .reset: .reset
        case .flush: .flush
        }
    }
}

struct WireAttachment: WireValue {
    var identifier: String
    var settings: WireSettings
    var takesEvents: Bool?
    var wasLaunched: Bool?
    var told: [Int]?

    init(_ attachment: ClientMessage.Attachment) throws {
        identifier = attachment.identifier
        settings = try WireSettings(attachment.settings)
        takesEvents = attachment.takesEvents.unless(false)
        wasLaunched = attachment.wasLaunched.unless(false)
        told = attachment.told.unlessEmpty
    }

    func model() throws -> ClientMessage.Attachment {
        var attachment = ClientMessage.Attachment(
            identifier: try Wire.plain(identifier, "a session's identifier"), settings: try settings.model(),
            takesEvents: takesEvents ?? false, wasLaunched: wasLaunched ?? false)
        attachment.told = try (told ?? []).map { try Wire.task($0) }
        return attachment
    }
}

struct WireManagerRequest: WireValue {
    enum Kind: String { case list, status, pause, resume, cancel, quit, log, watch, handOver }

    var kind: String
    var transfer: Int64?
    var program: String?

    init(_ request: ManagerRequest) {
        let kind: Kind
        switch request {
        case .list: kind = .list
        case .status: kind = .status
        case .pause(let number):
            kind = .pause
            transfer = number
        case .resume(let number):
            kind = .resume
            transfer = number
        case .cancel(let number):
            kind = .cancel
            transfer = number
        case .quit(let program):
            kind = .quit
            self.program = program
        case .log: kind = .log
        case .watch: kind = .watch
        case .handOver: kind = .handOver
        }
        self.kind = kind.rawValue
    }

    func model() throws -> ManagerRequest {
        guard let kind = Kind(rawValue: kind) else { throw MessageFailure.unknownKind("manage " + MessageFailure.excerpt(kind)) }
        switch kind {
        case .list: return .list
        case .status: return .status
        case .pause: return .pause(try Wire.need(transfer, "a transfer"))
        case .resume: return .resume(try Wire.need(transfer, "a transfer"))
        case .cancel: return .cancel(try Wire.need(transfer, "a transfer"))
        case .quit: return .quit(program: try Wire.plain(try Wire.need(program, "a program"), "a program"))
        case .log: return .log
        case .watch: return .watch
        case .handOver: return .handOver
        }
    }
}
