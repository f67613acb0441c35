// SPDX-License-Identifier: Apache-2.0

internal import BackgroundClient
internal import BackgroundProtocol
internal import Foundation
internal import LoadingEngine
internal import LoadingModel
internal import LoadingStores
internal import LoadingTrust
internal import Synchronization

/// The background sessions of this process, and the sessions for which the daemon launched the process.
enum BackgroundSessions {
    private struct State {
        var sessions: [String: WeakRemote] = [:]
        /// Sessions that the daemon launched the program for; empty after ``takeAwaited()`` has returned them.
        var awaited: [String]
        /// Sessions whose events the program has reported as handled.
        var handled: Set<String> = []
    }

    private struct WeakRemote: Sendable {
        weak var remote: RemoteSession?
    }

    /// The name of the environment variable in which a launched program gets its sessions' identifiers, one per line.
    static let launchVariable = "URLSESSION_BACKGROUND_EVENTS"

    private static let state = Mutex(State(awaited: launchedFor.sorted()))

    /// The sessions that the daemon launched this program for; empty if the program was started in another way.
    static let launchedFor: Set<String> = {
        if let named = ProcessInfo.processInfo.environment[launchVariable], !named.isEmpty {
            // Child processes must not inherit the variable: the daemon did not launch them.
            unsetenv(launchVariable)
            return Set(named.split(separator: "\n").map(String.init))
        }
        // A program started by a service manager does not get the environment variable; the daemon leaves a file instead.
        guard let program = DaemonStarter.executable() else { return [] }
        var identifiers: Set<String> = []
        for path in DaemonPlace().events(for: program) {
            let text = SmallFile.contents(of: path, limit: 2 << 20).map { String(decoding: $0, as: UTF8.self) } ?? ""
            let changed = (try? FileManager.default.attributesOfItem(atPath: path))?[.modificationDate] as? Date
            unlink(path)
            // An older file is from a launch that failed; this process was perhaps started by the user.
            guard let changed, abs(changed.timeIntervalSinceNow) < 60 else { continue }
            identifiers.formUnion(text.split(separator: "\n").map(String.init))
        }
        return identifiers
    }()

    /// Returns the engine of a background session; nil for other sessions.
    static func remote(
        for settings: SessionSettings, _ policy: SessionPolicy, _ memory: SessionMemory, takesEvents: Bool
    ) -> RemoteSession? {
        guard let identifier = settings.background.identifier else { return nil }
        return RemoteSession(
            ClientMessage.Attachment(
                identifier: identifier, settings: settings.backgroundSettings(policy, memory), takesEvents: takesEvents,
                // True for all sessions of a launched program, whichever session it was launched for.
                wasLaunched: !launchedFor.isEmpty), isAwaited: launchedFor.contains(identifier))
    }

    /// Registers the engine of a session whose tasks have been restored.
    ///
    /// ``handled(_:)`` notifies the engine when the program has handled the session's events.
    static func register(_ remote: RemoteSession) {
        state.withLock { $0.sessions[remote.identifier] = WeakRemote(remote: remote) }
    }

    /// Returns the sessions that the program was launched for; later calls return an empty array.
    static func takeAwaited() -> [String] {
        state.withLock { state in
            defer { state.awaited = [] }
            return state.awaited
        }
    }

    /// Records that the program has handled a session's events.
    static func handled(_ identifier: String) {
        let remote = state.withLock { state in
            state.handled.insert(identifier)
            return state.sessions[identifier]?.remote
        }
        remote?.eventsHandled()
    }

    static func hasHandled(_ identifier: String) -> Bool { state.withLock { $0.handled.contains(identifier) } }
}

extension SessionSettings {
    /// The error with which the tasks of a background session with these settings fail; nil if the session can run tasks, or is not
    /// a background session.
    var backgroundObjection: LoadError? {
        guard let identifier = background.identifier else { return nil }
        if identifier.isEmpty { return LoadError(.unknown, "a background session needs a nonempty identifier") }
        if identifier.utf8.count > 1024 || identifier.utf8.contains(0) {
            return LoadError(.unknown, "the identifier of a background session must have at most 1024 bytes and no NUL byte")
        }
        let isExtension = Bundle.main.bundleURL.pathExtension == "appex"
        if background.sharedContainer?.isEmpty ?? isExtension {
            return LoadError(
                .backgroundSessionNeedsContainer,
                "a background session of an app extension needs a nonempty sharedContainerIdentifier")
        }
        return nil
    }

    /// Returns the credentials to send to the daemon: those that are not in a file that the daemon can read, at most 1,000.
    ///
    /// The default credential of each protection space comes first, because it is used without asking the app.
    private static func credentials(in store: CredentialStore, isOnDisk: Bool) -> [BackgroundSettings.KnownCredential] {
        var known: [BackgroundSettings.KnownCredential] = []
        for (space, credentials) in store.all() {
            let preferred = store.defaultCredential(for: space)
            for credential in credentials.values where !isOnDisk || credential.persistence == .forSession {
                known.append(.init(space: space, credential: credential, isDefault: credential == preferred))
            }
        }
        let ordered = known.filter(\.isDefault) + known.filter { !$0.isDefault }
        return Array(ordered.prefix(1000))
    }

    func backgroundSettings(_ policy: SessionPolicy, _ memory: SessionMemory) -> BackgroundSettings {
        var result = BackgroundSettings()
        result.policy = policy
        result.policy.waitsForConnectivity = true
        result.proxies = proxyRules()
        if policy.trustRoots.isEmpty, let roots = TrustRoots.rootsOfThisProcess {
            result.policy.trustRoots = roots
            result.policy.trustRootsAreTheSystems = true
        } else if policy.trustRoots.isEmpty {
            let current = FileManager.default.currentDirectoryPath
            func absolute(_ path: String) -> String { path.hasPrefix("/") ? path : current + "/" + path }
            result.rootFile = TrustRoots.file.map(absolute)
            result.rootDirectories = Array(TrustRoots.directories.map(absolute).prefix(64))
        }
        result.security = security
        let data = StoreLocations.dataDirectory(program: ProcessInfo.processInfo.processName)
        if cookieStorage != nil { result.cookies = memory.stores.cookies?.path.map { .file($0) } ?? .memory }
        if let storage = credentialStorage {
            let isOnDisk = storage === URLCredentialStorage.shared && data != nil
            result.credentials = isOnDisk ? data.map { .file($0 + "/credentials") } ?? .memory : .memory
            if let store = memory.stores.credentials { result.knownCredentials = Self.credentials(in: store, isOnDisk: isOnDisk) }
        }
        if policy.usesStrictTransportSecurity {
            result.strictTransportSecurity =
                strictTransportSecurity == nil ? data.map { .file($0 + "/hsts") } ?? .memory : .memory
        }
        result.isDiscretionary = background.isDiscretionary
        result.sendsLaunchEvents = background.sendsLaunchEvents
        result.launch = background.launch?.wireForm
        return result
    }
}

extension URLSessionConfiguration.BackgroundLaunch {
    fileprivate var wireForm: BackgroundSettings.Launch {
        switch self {
        case .arguments(let arguments, let directory): .arguments(arguments, directory: directory)
        case .systemdUnit(let unit): .systemdUnit(unit)
        case .dBusName(let name): .dBusName(name)
        }
    }
}
