// SPDX-License-Identifier: Apache-2.0

internal import BackgroundClient
internal import Foundation
internal import LoadingModel
internal import LoadingObservers
internal import Synchronization

/// The parts of a session that come from its configuration and never change.
final class SessionEquipment: Sendable {
    let settings: URLSessionConfiguration
    let service: any LoadingService
    /// The same object as `service` if the daemon performs the session's uploads and downloads; otherwise nil.
    let background: RemoteSession?
    /// The engine in this process for a background session's other tasks; nil until the first one, and in other sessions.
    private let localEngine = Mutex<(any LoadingService)?>(nil)
    let customClasses: CustomClasses
    let memory: SessionMemory
    /// The configuration's header fields that tasks include in the requests they show to the app.
    let additionalFields: [(name: String, value: String)]
    /// The configuration's trust roots, in DER.
    let trustRoots: [Data]
    let isShared: Bool
    #if Logging || Metrics || Tracing
    let observers: SessionObservers?
    #endif

    init(_ configuration: URLSessionConfiguration, hasDelegate: Bool = false) {
        settings = Self.snapshot(of: configuration)
        memory = SessionMemory(settings.snapshot)
        let policy = settings.sessionPolicy()
        trustRoots = policy.trustRoots
        if let remote = BackgroundSessions.remote(for: settings.snapshot, policy, memory, takesEvents: hasDelegate) {
            service = remote
            background = remote
        } else {
            service = EngineDirectory.service(for: policy, memory, settings.snapshot)
            background = nil
        }
        customClasses = CustomClasses(settings, isShared: false)
        additionalFields = settings.snapshot.visibleFields()
        settings.snapshot.warnAboutReservedFields()
        isShared = false
        #if Logging || Metrics || Tracing
        observers = policy.connectionObserver as? SessionObservers
        #endif
    }

    /// Equips a session with an engine that the caller provides.
    init(_ configuration: URLSessionConfiguration, service: any LoadingService, isShared: Bool) {
        settings = Self.snapshot(of: configuration)
        memory = SessionMemory(settings.snapshot)
        self.service = service
        background = nil
        trustRoots = []
        customClasses = CustomClasses(settings, isShared: isShared)
        additionalFields = settings.snapshot.visibleFields()
        self.isShared = isShared
        #if Logging || Metrics || Tracing
        observers = SessionObservers(settings.snapshot.observers)
        #endif
    }

    // MARK: Engines

    /// The engine for tasks that end with this process.
    var localService: any LoadingService {
        guard background != nil else { return service }
        return localEngine.withLock { engine in
            if let engine { return engine }
            var policy = settings.sessionPolicy()
            policy.waitsForConnectivity = true
            let made = EngineDirectory.service(for: policy, memory, settings.snapshot)
            engine = made
            return made
        }
    }

    private var existingLocalEngine: (any LoadingService)? { localEngine.withLock { $0 } }

    /// Releases the engines when the app has released the session: the daemon keeps its tasks.
    func release() {
        if let background { background.detach() } else { service.invalidate() }
        existingLocalEngine?.invalidate()
    }

    func cancelAll() {
        service.cancelAll()
        existingLocalEngine?.cancelAll()
    }

    func invalidate() {
        service.invalidate()
        existingLocalEngine?.invalidate()
    }

    func renew(_ renewal: Renewal, completion: @escaping @Sendable () -> Void) {
        guard memory.hasAppSubclasses else { return renewEngines(renewal, completion) }
        // A store that is an instance of the app's subclass runs the app's code, which must not block the caller.
        memory.storageQueue.async { [self] in
            switch renewal {
            case .reset:
                memory.reset()
                renewEngines(renewal, completion)
            case .flush: memory.flush { self.renewEngines(renewal, completion) }
            }
        }
    }

    private func renewEngines(_ renewal: Renewal, _ completion: @escaping @Sendable () -> Void) {
        guard background != nil else { return service.renew(renewal, completion: completion) }
        localService.renew(renewal) { [service] in service.renew(renewal, completion: completion) }
    }

    /// Returns a copy of the configuration in which the current shared stores replace references to the shared stores.
    static func snapshot(of configuration: URLSessionConfiguration) -> URLSessionConfiguration {
        let copy = configuration.copy() as? URLSessionConfiguration ?? configuration
        copy.resolveSharedStores()
        return copy
    }
}

extension URLSession {
    var service: any LoadingService { equipment.service }
    var customClasses: CustomClasses { equipment.customClasses }
    var memory: SessionMemory { equipment.memory }
    var additionalFields: [(name: String, value: String)] { equipment.additionalFields }
    var trustRoots: [Data] { equipment.trustRoots }
}

extension URLSessionConfiguration {
    /// Replaces references to the shared stores with the stores that are shared at this moment.
    fileprivate func resolveSharedStores() {
        let now = snapshot
        let (cookies, cache) = (now.cookieStorage, now.urlCache)
        set {
            $0.cookies = .given(cookies)
            $0.cache = .given(cache)
        }
    }
}
