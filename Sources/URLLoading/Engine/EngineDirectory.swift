// SPDX-License-Identifier: Apache-2.0

internal import LoadingEngine
internal import LoadingModel
internal import NetworkPaths

/// Chooses the engine for a session.
enum EngineDirectory {
    /// Makes an engine in this process for one session.
    static func service(
        for policy: SessionPolicy, _ memory: SessionMemory, _ settings: SessionSettings, loop: LoopChoice = .shared
    ) -> any LoadingService {
        var policy = policy
        policy.cachedBodyLimit = memory.cachedBodyLimit
        let network: any NetworkMonitoring = settings.networkPathMonitor.map { AppPathMonitor($0) } ?? SystemPathMonitor.shared
        return SessionEngine.make(
            policy: policy, stores: memory.stores, security: settings.security, proxies: settings.proxyRules(), network: network,
            loop: loop)
    }
}
