// SPDX-License-Identifier: Apache-2.0

import LoadingModel

/// One step of a load.
///
/// A stage changes the request on its way to the server, changes the response on its way back, or produces the response itself.
///
/// A stage is stateless: all state is in the ``Hop`` and the ``Load``.
protocol LoadStage: AnyObject {
    /// Does as much of the stage's work as is possible without waiting, and returns where the hop continues.
    ///
    /// Separate from ``answer(_:in:then:)``, because a load that waits there keeps a stack frame for each stage that it has
    /// entered.
    func step(_ hop: Hop, in load: Load) throws(LoadError) -> StageStep

    /// Produces the response, either with the stages below or within this stage.
    func answer(_ hop: Hop, in load: Load, then next: LowerStages) async throws(LoadError) -> Answer
}

/// Where a hop continues after a stage.
enum StageStep {
    /// At the next stage: this stage is done.
    case proceed
    /// Back up, with the response.
    case answered(Answer)
    /// Nowhere until the load is woken; the step is then repeated.
    case waits
    /// Nowhere yet: ``LoadStage/answer(_:in:then:)`` must be called in a Swift task, where the stage waits for its own response or
    /// for that of the stages below.
    case needsTask
}

/// A stage and all stages below it, in one object, so that a waiting load stores its position in one pointer.
final class LowerStages {
    private let stage: any LoadStage
    /// Nil for the last stage.
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

    /// Returns the response to a hop that continues at the stages below.
    // Inlined, because every waiting load would otherwise keep another frame.
    @inline(__always)
    func answer(_ hop: Hop, in load: Load) async throws(LoadError) -> Answer {
        if !hop.isStopped, case .answered(let answer) = try step(hop, in: load) { return answer }
        let place = hop.takePlace() ?? self
        // The last stage ignores `next`.
        return try await place.stage.answer(hop, in: load, then: place.next ?? place)
    }

    /// Runs the hop down to the first stage that produces a response or has to wait; the hop then stays at that stage.
    // Recursive, because a loop would retain and release its variables for each stage.
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
