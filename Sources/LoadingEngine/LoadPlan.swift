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

/// The stages of a load, in the order a request meets them: this list is the system in six lines.
///
/// A request goes down the list and its response comes back up. A stage that has nothing to do with a hop is passed over, and the last
/// one to be reached gives the answer: which one depends on the hop, since a redirect may lead from the network into a class of the app.
struct LoadPlan {
    private let stages: LowerStages

    init(pool: ConnectionPool) {
        stages = LowerStages([
            FollowUpStage(pool: pool),
            CustomProtocolStage(),
            LocalContentStage(),
            PrepareStage(pool: pool),
            CacheStage(),
            NetworkStage(pool: pool),
        ])
    }

    // In line, since every load that waits would keep another frame.
    @inline(__always)
    func answer(_ hop: Hop, in load: Load) async throws(LoadError) -> Answer {
        let (stage, next) = try stages.stage(for: hop, in: load)
        return try await stage.answer(hop, in: load, then: next)
    }
}
