// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingModel

/// The stages of a load, in the order in which a request passes through them; the list in `init` contains every stage.
///
/// A request goes down the list and its response comes back up. A stage that does not apply to a hop is skipped. The last stage
/// that a hop reaches produces its response. Hops of the same load can end at different stages, because a redirect can lead from
/// the network to the app's own `URLProtocol` class.
///
/// The same stages can be run in two ways: ``proceed(_:in:)`` runs a hop without a task, as far as that is possible;
/// ``answer(_:in:)`` then continues in a task.
final class LoadPlan: HopStages {
    let pool: ConnectionPool
    private let followUp: FollowUpStage
    private let lower: LowerStages

    init(pool: ConnectionPool) {
        self.pool = pool
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

    /// Returns the response to a hop that continues at its current position, or to the last of the hops that follow it.
    func answer(_ hop: Hop, in load: Load) async throws(LoadError) -> Answer {
        try await followUp.answer(hop, in: load, then: lower)
    }

    /// Runs a load's first hop from its current position, as far as possible without a task.
    ///
    /// A response returned here is ready to be delivered. If the load needs a task, ``answer(_:in:)`` continues from the hop's
    /// new position.
    func proceed(_ hop: Hop, in load: Load) -> StageStep {
        do throws(LoadError) {
            let step = try (hop.takePlace() ?? lower).step(hop, in: load)
            guard case .answered(let answer) = step, followUp.mayFollowUp(answer, hop, in: load) else { return step }
            hop.keep(.answer(answer))
        } catch {
            hop.keep(.failure(error))
        }
        return .needsTask
    }
}
