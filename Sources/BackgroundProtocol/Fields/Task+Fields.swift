// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPWire
import LoadingModel

extension BackgroundOrder: CodedFields {
    private enum Delivery: String, Coded { case collect, stream, download }

    static var blank: Self { Self(TaskOrder(id: 0, request: LoadRequest(url: nil), delivery: .collect), created: 0) }

    mutating func visit(_ coder: Coder) throws {
        try coder.required(1, "task", &task.id, .task)
        try coder.required(2, "request", &task.request)
        var (delivery, resumeData): (Delivery, Data?) =
            switch task.delivery {
            case .collect: (.collect, task.upload?.resuming)
            case .stream: (.stream, task.upload?.resuming)
            case .download(let resuming): (.download, resuming)
            case .webSocket, .byteStream:
                throw MessageFailure.malformed("WebSocket and stream tasks cannot run in the background")
            }
        try coder.required(3, "delivery", &delivery)
        try coder.optional(4, "resumeData", &resumeData, .holds("resume data is too long") { $0.count <= Limits.body })
        switch delivery {
        case .collect: task.delivery = .collect
        case .stream: task.delivery = .stream
        case .download: task.delivery = .download(resuming: resumeData)
        }
        if delivery != .download, let resumeData { task.upload = UploadOrder(resuming: resumeData) }
        task.interests = TaskOrder.Interests(
            rawValue: try coder.defaulted(5, "interests", 0, coder.isReading ? nil : task.interests.rawValue))
        try coder.defaulted(6, "priority", 0.5, &task.priority, .priority)
        try coder.optional(7, "earliestBegin", &task.earliestBegin, .duration("the earliest begin"))
        try coder.defaulted(8, "notes", .blank, &notes)
        try coder.required(9, "created", &created, .finite("the time of an order"))
        try coder.defaulted(10, "isDiscretionary", false, &isDiscretionary)
    }
}

extension BackgroundOrder.Notes: CodedFields {
    static var blank: Self { Self() }

    mutating func visit(_ coder: Coder) throws {
        try coder.optional(1, "description", &description, .text("a description"))
        try coder.defaulted(2, "expectedToSend", -1, &expectedToSend, .atLeast(-1))
        try coder.defaulted(3, "expectedToReceive", -1, &expectedToReceive, .atLeast(-1))
    }
}

extension TransferCounts: CodedFields {
    static var blank: Self { Self() }

    mutating func visit(_ coder: Coder) throws {
        try coder.defaulted(1, "sent", 0, &sent, .atLeast(0))
        try coder.defaulted(2, "expectedToSend", -1, &expectedToSend, .atLeast(-1))
        try coder.defaulted(3, "received", 0, &received, .atLeast(0))
        try coder.defaulted(4, "expectedToReceive", -1, &expectedToReceive, .atLeast(-1))
    }
}

extension KnownTask.Phase: Coded {
    static func coded(_ value: Self?, _ coder: Coder) throws -> Self {
        try coder.named(["running": .running, "suspended": .suspended, "ended": .ended], value)
    }
}

extension KnownTask: CodedFields {
    static var blank: Self { Self(order: .blank, phase: .running) }

    mutating func visit(_ coder: Coder) throws {
        try coder.required(1, "order", &order)
        try coder.defaulted(2, "phase", .running, &phase)
        try coder.defaulted(3, "counts", .blank, &counts)
        try coder.optional(4, "current", &current)
        try coder.optional(5, "response", &response)
    }
}

extension LoadRequest: CodedFields {
    static var blank: Self { Self(url: nil) }

    mutating func visit(_ coder: Coder) throws {
        try coder.optional(1, "url", &url)
        try coder.optional(2, "mainDocument", &mainDocumentURL)
        try coder.defaulted(3, "method", "GET", &method, .text("a method", limit: Limits.identifier))
        try coder.defaulted(4, "fields", HeaderBlock(), &headers, .request)
        body = try coder.optional(5, "body", coder.isReading || body.isNone ? nil : body) ?? .none
        try coder.optional(6, "timeout", &timeout, .duration("a timeout"))
        try coder.choice(7, "cachePolicy", .useProtocolCachePolicy, &cachePolicy)
        try coder.defaulted(8, "handlesCookies", true, &handlesCookies)
        try coder.optional(9, "partition", &cookiePartition, .text("a cookie partition"))
        try coder.defaulted(10, "needs", .none, &needs)
        try coder.defaulted(11, "assumesHTTP3", false, &assumesHTTP3)
    }
}

extension ConnectionNeeds: CodedFields {
    static var blank: Self { .none }

    mutating func visit(_ coder: Coder) throws {
        try coder.choice(1, "service", .ordinary, &service)
        try coder.defaulted(2, "requiresDNSSEC", false, &requiresDNSSEC)
        prohibited = ProhibitedNetworks(
            rawValue: try coder.defaulted(3, "prohibited", 0, coder.isReading ? nil : prohibited.rawValue))
    }
}

extension RequestBody: CodedKinds {
    var isNone: Bool { if case .none = self { true } else { false } }

    init(kind: String, from coder: Coder) throws {
        switch kind {
        case "data":
            let data: Data = try coder.required(2, "data")
            try Limits.check(data.count <= Limits.body, "a body of \(data.count) bytes is too long")
            self = .data(data)
        case "file": self = .file(path: try coder.required(3, "path", nil, .path("a body's file")))
        default: throw coder.fault("has an unknown kind")
        }
    }

    func write(to coder: Coder) throws {
        switch self {
        case .data(let data):
            try Limits.check(
                data.count <= Limits.body, "a body of \(data.count) bytes can be sent in the background only from a file")
            try coder.kind("data")
            try coder.required(2, "data", data)
        case .file(let path):
            try coder.kind("file")
            try coder.required(3, "path", path, .path("a body's file"))
        case .none, .stream, .streamOnDemand:
            throw MessageFailure.malformed("a stream cannot be sent in the background, only a file or data")
        }
    }
}

extension HeaderBlock: Coded {
    /// Names and values alternate.
    static func coded(_ value: HeaderBlock?, _ coder: Coder) throws -> HeaderBlock {
        if let value {
            try coder.list(value.count * 2) { index in
                let line = value.lines[index / 2]
                _ = try coder.octets(value.bytes[index.isMultiple(of: 2) ? line.name : line.value])
            }
            return value
        }
        var bytes: [UInt8] = []
        var starts: [Int] = []
        try coder.list(nil) { _ in
            starts.append(bytes.count)
            bytes.append(contentsOf: try coder.octets(nil))
        }
        try Limits.check(starts.count.isMultiple(of: 2), "a field has no value")
        let lines = stride(from: 0, to: starts.count, by: 2).map { index in
            let (name, value) = (starts[index], starts[index + 1])
            let end = index + 2 < starts.count ? starts[index + 2] : bytes.count
            return Line(nameStart: name, nameLength: value - name, valueStart: value, valueLength: end - value)
        }
        return HeaderBlock(bytes: bytes, lines: lines)
    }
}
