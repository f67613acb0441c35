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
enum LoadPlan {
    static func stages(pool: ConnectionPool) -> LowerStages {
        LowerStages([
            FollowUpStage(pool: pool),
            CustomProtocolStage(),
            LocalContentStage(),
            PrepareStage(pool: pool),
            CacheStage(),
            NetworkStage(pool: pool),
        ])
    }
}

/// The stages below one: what a load that waits remembers of where it is going, in one word.
final class LowerStages {
    /// The first of them; nil where there is none.
    private let stage: (any LoadStage)?
    private let next: LowerStages?

    init(_ stages: ArraySlice<any LoadStage>) {
        stage = stages.first
        next = stages.isEmpty ? nil : LowerStages(stages.dropFirst())
    }

    /// The one way to the next stage.
    // In line, since every load that waits would keep another frame.
    @inline(__always)
    func answer(_ hop: Hop, in load: Load) async throws(LoadError) -> Answer {
        let place = try place(of: hop, in: load)
        guard let stage = place.stage, let next = place.next else { throw Self.nobody(hop) }
        return try await stage.answer(hop, in: load, then: next)
    }

    /// Takes the hop to the first stage where it has to wait.
    // Not in a loop, whose variables would be retained and released for each stage.
    @inline(never)
    private func place(of hop: Hop, in load: Load) throws(LoadError) -> LowerStages {
        guard let stage, let next else { throw Self.nobody(hop) }
        switch try stage.step(hop, in: load) {
        case .wait: return self
        case .goOn: return try next.place(of: hop, in: load)
        }
    }

    private static func nobody(_ hop: Hop) -> LoadError {
        LoadError(.unsupportedURL, "nothing loads this URL", url: hop.request.url)
    }
}
