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

/// An order; the task's own holder of connections stays with the program.
struct WireOrder: WireValue {
    enum Delivery: String { case collect, stream, download }

    var task: Int?
    var request: WireRequest
    var delivery: String
    var resumeData: Data?
    var interests: Int?
    var priority: Float?
    var earliestBegin: Double?
    var notes: WireNotes?
    var created: Double
    var isDiscretionary: Bool?

    static let usualPriority: Float = 0.5

    init(_ order: BackgroundOrder) throws {
        task = order.task.id
        request = try WireRequest(order.task.request)
        switch order.task.delivery {
        case .collect: delivery = Delivery.collect.rawValue
        case .stream: delivery = Delivery.stream.rawValue
        case .download(let resuming):
            delivery = Delivery.download.rawValue
            resumeData = resuming
        }
        interests = order.task.interests.rawValue.unless(0)
        priority = Self.priority(order.task.priority)
        earliestBegin = order.task.earliestBegin.map(Wire.duration)
        notes = WireNotes(order.notes)
        created = order.created
        isDiscretionary = order.isDiscretionary.unless(false)
    }

    func model() throws -> BackgroundOrder {
        let delivery: TaskOrder.Delivery
        switch try Wire.need(Delivery(rawValue: self.delivery), "a delivery") {
        case .collect: delivery = .collect
        case .stream: delivery = .stream
        case .download:
            try Wire.check((resumeData?.count ?? 0) <= Wire.bodyLimit, "resume data is too long")
            delivery = .download(resuming: resumeData)
        }
        let task = TaskOrder(
            id: try Wire.task(task), request: try request.model(), delivery: delivery,
            interests: TaskOrder.Interests(rawValue: interests ?? 0),
            priority: priority.flatMap(Self.priority) ?? Self.usualPriority,
            earliestBegin: try earliestBegin.map { try Wire.finite($0, "the earliest begin") })
        var order = BackgroundOrder(task, created: try Wire.finite(created, "the time of an order"))
        if let notes { order.notes = try notes.notes() }
        order.isDiscretionary = isDiscretionary ?? false
        return order
    }

    /// Nil for the usual one, which is also that of what is no number.
    static func priority(_ priority: Float) -> Float? {
        priority.isNaN ? nil : min(max(priority, 0), 1).unless(usualPriority)
    }
}

struct WireNotes: Codable {
    var description: String?
    var expectedToSend: Int64?
    var expectedToReceive: Int64?

    /// Nil where there are none.
    init?(_ notes: BackgroundOrder.Notes) {
        if notes == BackgroundOrder.Notes() { return nil }
        description = notes.description
        expectedToSend = notes.expectedToSend.unless(-1)
        expectedToReceive = notes.expectedToReceive.unless(-1)
    }

    func notes() throws -> BackgroundOrder.Notes {
        var notes = BackgroundOrder.Notes()
        notes.description = try description.map { try Wire.text($0, "a description") }
        notes.expectedToSend = max(-1, expectedToSend ?? -1)
        notes.expectedToReceive = max(-1, expectedToReceive ?? -1)
        return notes
    }
}

struct WireCounts: Codable {
    var sent: Int64?
    var expectedToSend: Int64?
    var received: Int64?
    var expectedToReceive: Int64?

    /// Nil where nothing is known.
    init?(_ counts: TransferCounts) {
        if counts == TransferCounts() { return nil }
        sent = counts.sent.unless(0)
        expectedToSend = counts.expectedToSend.unless(-1)
        received = counts.received.unless(0)
        expectedToReceive = counts.expectedToReceive.unless(-1)
    }

    var counts: TransferCounts {
        var counts = TransferCounts()
        counts.sent = max(0, sent ?? 0)
        counts.expectedToSend = max(-1, expectedToSend ?? -1)
        counts.received = max(0, received ?? 0)
        counts.expectedToReceive = max(-1, expectedToReceive ?? -1)
        return counts
    }
}

struct WireKnownTask: WireValue {
    enum Phase: String { case running, suspended, ended }

    var order: WireOrder
    /// Nil for one that runs.
    var phase: String?
    var counts: WireCounts?
    var current: WireRequest?
    var response: WireResponse?

    init(_ task: KnownTask) throws {
        order = try WireOrder(task.order)
        switch task.phase {
        case .running: phase = nil
        case .suspended: phase = Phase.suspended.rawValue
        case .ended: phase = Phase.ended.rawValue
        }
        counts = WireCounts(task.counts)
        current = try task.current.map { try WireRequest($0) }
        response = try task.response.map { try WireResponse($0) }
    }

    func model() throws -> KnownTask {
        let phase: KnownTask.Phase
        switch try Wire.need(Phase(rawValue: self.phase ?? Phase.running.rawValue), "a task's phase") {
        case .running: phase = .running
        case .suspended: phase = .suspended
        case .ended: phase = .ended
        }
        var task = KnownTask(order: try order.model(), phase: phase)
        task.counts = counts?.counts ?? TransferCounts()
        task.current = try current?.model()
        task.response = try response?.model()
        return task
    }
}
