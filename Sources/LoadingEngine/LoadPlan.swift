//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import HTTPTransport
import LoadingModel

/// The stages of a load in the order in which a request passes them: the list in `init` is the system in seven lines.
///
/// A request goes down the list and its response comes back up. A stage that does not apply to a hop is skipped, and the last stage
/// that is reached produces the response: which one that is depends on the hop, since a redirect may lead from the network to a
/// class of the app.
///
/// There are two ways through the list, with the same steps of the stages: ``proceed(_:in:)`` as far as no task is needed, and from
/// there ``answer(_:in:)``, which a task awaits.
final class LoadPlan {
    private let followUp: FollowUpStage
    private let lower: LowerStages

    init(pool: ConnectionPool) {
        followUp = FollowUpStage(pool: pool)
        lower = LowerStages(
            CustomProtocolStage(),
            LocalContentStage(),
            FTPStage(pool: pool),
            PrepareStage(pool: pool),
            CacheStage(),
            NetworkStage(pool: pool)
        )
    }

    /// Produces the response for a hop from its current position, including the hops that follow from it.
    func answer(_ hop: Hop, in load: Load) async throws(LoadError) -> Answer {
        try await followUp.answer(hop, in: load, then: lower)
    }

    /// Takes a load's first hop from its current position as far as possible without a task.
    ///
    /// A response returned here only has to be delivered; if the load needs a task, ``answer(_:in:)`` continues from here.
    func proceed(_ hop: Hop, in load: Load) -> StageStep {
        do throws(LoadError) {
            let step = try (hop.takePlace() ?? lower).step(hop, in: load)
            guard case .answered(let answer) = step, !followUp.needsNoFollowUp(answer, hop, in: load) else { return step }
            hop.keep(.answer(answer))
        } catch {
            hop.keep(.failure(error))
        }
        return .needsTask
    }
}

/// A stage and all that follow it, in one object, so that a waiting load remembers its position in one word.
final class LowerStages {
    /// The first of them.
    private let stage: any LoadStage
    /// Nil if the first is the last.
    private let next: LowerStages?

    init(_ first: any LoadStage, _ others: any LoadStage...) {
        stage = first
        var next: LowerStages?
        for stage in others.reversed() { next = LowerStages(stage, then: next) }
        self.next = next
    }

    private init(_ stage: any LoadStage, then next: LowerStages?) {
        self.stage = stage
        self.next = next
    }

    /// The only way to the next stage.
    // Inlined, because every waiting load would otherwise keep another frame.
    @inline(__always)
    func answer(_ hop: Hop, in load: Load) async throws(LoadError) -> Answer {
        if !hop.isStopped, case .answered(let answer) = try step(hop, in: load) { return answer }
        let place = hop.takePlace() ?? self
        // The last stage calls no other.
        return try await place.stage.answer(hop, in: load, then: place.next ?? place)
    }

    /// Takes the hop to the first stage that produces a response or has to wait; the hop then keeps that position.
    // Not a loop, whose variables would be retained and released for each stage.
    @inline(never)
    func step(_ hop: Hop, in load: Load) throws(LoadError) -> StageStep {
        let step = try stage.step(hop, in: load)
        switch step {
        case .proceed: if let next { return try next.step(hop, in: load) }
        case .answered: return step
        case .waits, .needsTask: break
        }
        hop.stop(at: self)
        return step
    }
}
