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

/// The stages of a load, in the order a request meets them: the list that begins with `followUp` is the system in six lines.
///
/// A request goes down the list and its response comes back up. A stage that has nothing to do with a hop is passed over, and the last
/// one to be reached gives the answer: which one depends on the hop, since a redirect may lead from the network into a class of the app.
final class LoadPlan {
    private let followUp: FollowUpStage
    private let customProtocol = CustomProtocolStage()
    private let localContent = LocalContentStage()
    private let prepare: PrepareStage
    private let cache = CacheStage()
    private let network: NetworkStage
    // All stages below the follow-up, and those from one of them on.
    private let lower: LowerStages
    private let fromLocalContent: LowerStages
    private let fromPrepare: LowerStages
    private let fromCache: LowerStages
    private let last: LowerStages

    init(pool: ConnectionPool) {
        followUp = FollowUpStage(pool: pool)
        prepare = PrepareStage(pool: pool)
        network = NetworkStage(pool: pool)
        last = LowerStages(network, nil)
        fromCache = LowerStages(cache, last)
        fromPrepare = LowerStages(prepare, fromCache)
        fromLocalContent = LowerStages(localContent, fromPrepare)
        lower = LowerStages(customProtocol, fromLocalContent)
    }

    /// Answers a hop, and the hops that follow from its answer.
    func answer(_ hop: Hop, in load: Load) async throws(LoadError) -> Answer {
        try await followUp.answer(hop, in: load, then: lower)
    }

    // MARK: Without a task

    /// What became of a hop that nobody waits for yet.
    enum Progress {
        /// The load has to wait, and is then to ``goOn(_:in:)``.
        case waits
        /// There is nothing to do but deliver the answer.
        case answered(Answer)
        /// What is next takes a task: ``answer(_:in:)`` goes on from where the hop stands.
        case needsTask
    }

    /// Sends a load's first hop on its way, as far as that takes no task.
    func depart(_ hop: Hop, in load: Load) -> Progress {
        do throws(LoadError) {
            hop.stand(at: try place(of: hop, in: load))
            guard hop.stands(at: last) else { return .needsTask }
            network.begin(hop, in: load)
            return goOn(hop, in: load)
        } catch {
            // Nothing is asked of the stages again before it is settled what the failure leads to.
            hop.stand(at: last)
            network.hasBegun(hop)
            hop.keep(.failure(error))
            return .needsTask
        }
    }

    /// The stage where the hop has to wait, and those below.
    ///
    /// As `LowerStages` finds it, but written out for the hops that all loads begin with: stages that are known cost less to go through.
    private func place(of hop: Hop, in load: Load) throws(LoadError) -> LowerStages {
        guard case .goOn = customProtocol.step(hop, in: load) else { return lower }
        guard case .goOn = localContent.step(hop, in: load) else { return fromLocalContent }
        guard case .goOn = try prepare.step(hop, in: load) else { return fromPrepare }
        guard case .goOn = try cache.step(hop, in: load) else { return fromCache }
        return last
    }

    /// Does what can be done for a hop that departed, when its load was woken.
    func goOn(_ hop: Hop, in load: Load) -> Progress {
        do throws(LoadError) {
            guard let answer = try network.attempt(hop, in: load) else { return load.tunnels.isEmpty ? .waits : .needsTask }
            if followUp.isThrough(answer, hop, in: load) { return .answered(answer) }
            hop.keep(.success(answer))
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

    init(_ stage: any LoadStage, _ next: LowerStages?) {
        self.stage = stage
        self.next = next
    }

    /// The one way to the next stage.
    // In line, since every load that waits would keep another frame.
    @inline(__always)
    func answer(_ hop: Hop, in load: Load) async throws(LoadError) -> Answer {
        let place = if let stands = hop.takePlace() { stands } else { try place(of: hop, in: load) }
        // The last stage asks nobody.
        return try await place.stage.answer(hop, in: load, then: place.next ?? place)
    }

    /// Takes the hop to the first stage where it has to wait.
    // Not in a loop, whose variables would be retained and released for each stage.
    @inline(never)
    func place(of hop: Hop, in load: Load) throws(LoadError) -> LowerStages {
        guard let next, case .goOn = try stage.step(hop, in: load) else { return self }
        return try next.place(of: hop, in: load)
    }
}
