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

struct WireDaemonMessage: WireValue {
    enum Kind: String {
        case welcome, refused, known, attached, accepted, rejected, forgotten, event, question, renewed, proxies, failed,
            transfers, status,
            log, done
    }

    var kind: String
    var version: Int?
    var refusal: String?
    var text: String?
    var known: WireKnownTask?
    var task: Int?
    var tasks: [Int]?
    var error: WireError?
    var event: WireEvent?
    var question: WireQuestion?
    var number: Int?
    var urls: [String?]?
    var transfers: [WireTransfer]?
    var isLast: Bool?
    var status: WireStatus?
    var log: [String]?

    init(_ message: DaemonMessage) throws {
        let kind: Kind
        switch message {
        case .welcome(let version):
            kind = .welcome
            self.version = version
        case .refused(let refusal, let text):
            kind = .refused
            (self.refusal, self.text) = (refusal.rawValue, text.unless(""))
        case .known(let task):
            kind = .known
            known = try WireKnownTask(task)
        case .attached(let lastTask):
            kind = .attached
            task = lastTask.unless(0)
        case .accepted(let tasks):
            kind = .accepted
            self.tasks = tasks
        case .rejected(let task, let error):
            kind = .rejected
            (self.task, self.error) = (task, WireError(error))
        case .forgotten(let task):
            kind = .forgotten
            self.task = task
        case .event(let event, let task):
            kind = .event
            (self.event, self.task) = (try WireEvent(event), task)
        case .question(let question, let task, let number):
            kind = .question
            (self.question, self.task, self.number) = (try WireQuestion(question), task, number)
        case .renewed(let request):
            kind = .renewed
            number = request
        case .proxies(let urls, let request):
            kind = .proxies
            (self.urls, number) = (urls.map { $0?.absoluteString }, request)
        case .failed(let error, let request):
            kind = .failed
            (self.error, number) = (WireError(error), request)
        case .transfers(let transfers, let request, let isLast):
            kind = .transfers
            (self.transfers, number, self.isLast) = (
                transfers.map { WireTransfer($0) }.unlessEmpty, request, isLast.unless(false)
            )
        case .status(let status, let request):
            kind = .status
            (self.status, number) = (WireStatus(status), request)
        case .log(let lines, let request):
            kind = .log
            (log, number) = (lines.unlessEmpty, request)
        case .done(let request):
            kind = .done
            number = request
        }
        self.kind = kind.rawValue
    }

    func model() throws -> DaemonMessage {
        guard let kind = Kind(rawValue: kind) else { throw MessageFailure.unknownKind(MessageFailure.excerpt(kind)) }
        switch kind {
        case .welcome: return .welcome(version: try Wire.need(version, "a version"))
        case .refused: return .refused(refusal.flatMap { DaemonMessage.Refusal(rawValue: $0) } ?? .malformed, text ?? "")
        case .known: return .known(try Wire.need(known, "a task").model())
        case .attached: return .attached(lastTask: try Wire.lastTask(task ?? 0))
        case .accepted: return .accepted(try (tasks ?? []).map { try Wire.task($0) })
        case .rejected: return .rejected(try Wire.task(task), try Wire.need(error, "an error").model())
        case .forgotten: return .forgotten(try Wire.task(task))
        case .event: return .event(try Wire.need(event, "an event").model(), try Wire.task(task))
        case .question:
            return .question(
                try Wire.need(question, "a question").model(), try Wire.task(task),
                question: try Wire.need(number, "a question's number"))
        case .renewed: return .renewed(request: try request())
        case .proxies:
            let urls = try (urls ?? []).map { try $0.map { try Wire.url($0, "a proxy's URL") } }
            return .proxies(urls, request: try request())
        case .failed: return .failed(try Wire.need(error, "an error").model(), request: try request())
        case .transfers:
            return .transfers(try (transfers ?? []).map { try $0.model() }, request: try request(), isLast: isLast ?? false)
        case .status: return .status(try Wire.need(status, "a status").model(), request: try request())
        case .log: return .log(log ?? [], request: try request())
        case .done: return .done(request: try request())
        }
    }

    private func request() throws -> Int { try Wire.need(number, "a request's number") }

    static func unknownKind(in data: Data) -> String? {
        guard let kinds = try? JSONDecoder().decode(WireKinds.self, from: data) else { return nil }
        guard let kind = Kind(rawValue: kinds.kind) else { return kinds.kind }
        return switch kind {
        case .event: kinds.event?.kind.flatMap { WireEvent.Kind(rawValue: $0) == nil ? "event \($0)" : nil }
        case .question: kinds.question?.kind.flatMap { WireQuestion.Kind(rawValue: $0) == nil ? "question \($0)" : nil }
        default: nil
        }
    }
}

struct WireTransfer: WireValue {
    var number: Int64
    var program: String?
    var session: String?
    var task: Int
    var url: String?
    var isUpload: Bool?
    var state: String?
    var reason: String?
    var counts: WireCounts?
    var created: Double
    var description: String?

    init(_ report: TransferReport) {
        number = report.number
        program = report.program.unless("")
        session = report.session.unless("")
        task = report.task
        url = report.url.unless("")
        isUpload = report.isUpload.unless(false)
        state = report.state.rawValue
        reason = report.reason.unless("")
        counts = WireCounts(report.counts)
        created = report.created
        description = report.description
    }

    func model() throws -> TransferReport {
        TransferReport(
            number: number, program: program ?? "", session: session ?? "", task: task, url: url ?? "",
            isUpload: isUpload ?? false,
            state: state.flatMap { TransferReport.State(rawValue: $0) } ?? .waiting, reason: reason ?? "",
            counts: counts?.counts ?? TransferCounts(), created: try Wire.finite(created, "the time of an order"),
            description: description)
    }
}

struct WireStatus: WireValue {
    var process: Int32?
    var version: String?
    var socket: String?
    var directory: String?
    var uptime: Double?
    var connections: Int?
    var sessions: Int?
    var running: Int?
    var waiting: Int?
    var paused: Int?
    var ended: Int?
    var residentBytes: Int64?
    var trouble: [String]?
    var isConnected: Bool?
    var isMetered: Bool?
    var hasExternalPower: Bool?

    init(_ status: DaemonStatus) {
        process = status.process.unless(0)
        version = status.version.unless("")
        socket = status.socket.unless("")
        directory = status.directory.unless("")
        uptime = status.uptime.unless(0)
        connections = status.connections.unless(0)
        sessions = status.sessions.unless(0)
        running = status.running.unless(0)
        waiting = status.waiting.unless(0)
        paused = status.paused.unless(0)
        ended = status.ended.unless(0)
        residentBytes = status.residentBytes.unless(0)
        trouble = status.trouble.unlessEmpty
        isConnected = status.isConnected.unless(true)
        isMetered = status.isMetered.unless(false)
        hasExternalPower = status.hasExternalPower.unless(true)
    }

    func model() throws -> DaemonStatus {
        var status = DaemonStatus()
        status.process = process ?? 0
        status.version = version ?? ""
        status.socket = socket ?? ""
        status.directory = directory ?? ""
        status.uptime = try Wire.finite(uptime ?? 0, "the uptime")
        status.connections = connections ?? 0
        status.sessions = sessions ?? 0
        status.running = running ?? 0
        status.waiting = waiting ?? 0
        status.paused = paused ?? 0
        status.ended = ended ?? 0
        status.residentBytes = residentBytes ?? 0
        status.trouble = trouble ?? []
        status.isConnected = isConnected ?? true
        status.isMetered = isMetered ?? false
        status.hasExternalPower = hasExternalPower ?? true
        return status
    }
}
