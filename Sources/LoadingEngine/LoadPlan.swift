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

/// The stages of a load, in the order a request meets them: the list in `init` is the system in seven lines.
///
/// A request goes down the list and its response comes back up. A stage that has nothing to do with a hop is passed over, and the last
/// one to be reached gives the answer: which one depends on the hop, since a redirect may lead from the network into a class of the app.
///
/// There are two who walk the list, by the same steps of the stages: ``goOn(_:in:)``, as far as that takes no task, and from there on
/// ``answer(_:in:)``, which a task waits for.
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

    /// Answers a hop from where it stands, and the hops that follow from its answer.
    func answer(_ hop: Hop, in load: Load) async throws(LoadError) -> Answer {
        try await followUp.answer(hop, in: load, then: lower)
    }

    /// Takes a load's first hop from where it stands as far as that takes no task.
    ///
    /// An answer has nothing to be done for but to be delivered; where the load needs a task, ``answer(_:in:)`` goes on from here.
    func goOn(_ hop: Hop, in load: Load) -> StageStep {
        do throws(LoadError) {
            let step = try (hop.takePlace() ?? lower).step(hop, in: load)
            guard case .answered(let answer) = step, !followUp.isThrough(answer, hop, in: load) else { return step }
            hop.keep(.answer(answer))
        } catch {
            hop.keep(.failure(error))
        }
        return .needsTask
    }
}

/// The stages below one: what a load that waits remembers of where it is going, in one word.
final class LowerStages {
    /// The first of them.
    private let stage: any LoadStage
    /// Nil where the first is the last.
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

    /// The one way to the next stage.
    // In line, since every load that waits would keep another frame.
    @inline(__always)
    func answer(_ hop: Hop, in load: Load) async throws(LoadError) -> Answer {
        if !hop.stands, case .answered(let answer) = try step(hop, in: load) { return answer }
        let place = hop.takePlace() ?? self
        // The last stage asks nobody.
        return try await place.stage.answer(hop, in: load, then: place.next ?? place)
    }

    /// Takes the hop to the first stage that answers it, or where it has to wait, and then stands.
    // Not in a loop, whose variables would be retained and released for each stage.
    @inline(never)
    func step(_ hop: Hop, in load: Load) throws(LoadError) -> StageStep {
        let step = try stage.step(hop, in: load)
        switch step {
        case .goOn: if let next { return try next.step(hop, in: load) }
        case .answered: return step
        case .waits, .needsTask: break
        }
        hop.stand(at: self)
        return step
    }
}
