//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import BackgroundClient
internal import BackgroundProtocol
internal import Foundation
internal import LoadingEngine
internal import LoadingModel
internal import LoadingStores
internal import LoadingTrust
internal import Synchronization

/// The background sessions of this process, and what it was started for.
enum BackgroundSessions {
    private struct State {
        var sessions: [String: WeakRemote] = [:]
        /// Sessions the daemon started the program for, whose events have not been asked for.
        var awaited: [String]
        /// The program has said that it dealt with them.
        var handled: Set<String> = []
    }

    private struct WeakRemote: Sendable {
        weak var remote: RemoteSession?
    }

    /// Set by the daemon for a program that it starts: the sessions' identifiers, each on a line of its own.
    static let launchVariable = "URLSESSION_BACKGROUND_EVENTS"

    private static let state = Mutex(State(awaited: launchedFor.sorted()))

    /// The sessions that the daemon started the program for, if it did.
    static let launchedFor: Set<String> = {
        if let named = ProcessInfo.processInfo.environment[launchVariable], !named.isEmpty {
            // What this process starts was not started by the daemon.
            unsetenv(launchVariable)
            return Set(named.split(separator: "\n").map(String.init))
        }
        // A service manager starts a program with no word of ours in its environment.
        guard let program = DaemonStarter.executable() else { return [] }
        var identifiers: Set<String> = []
        for path in DaemonPlace().events(for: program) {
            let text = SmallFile.contents(of: path, limit: 2 << 20).map { String(decoding: $0, as: UTF8.self) } ?? ""
            let changed = (try? FileManager.default.attributesOfItem(atPath: path))?[.modificationDate] as? Date
            unlink(path)
            // One that never came is not this one, which the user may have started.
            guard let changed, abs(changed.timeIntervalSinceNow) < 60 else { continue }
            identifiers.formUnion(text.split(separator: "\n").map(String.init))
        }
        return identifiers
    }()

    /// The engine of a background session; nil for the other kinds.
    static func remote(
        for settings: SessionSettings, _ policy: SessionPolicy, _ memory: SessionMemory, takesEvents: Bool
    ) -> RemoteSession? {
        guard let identifier = settings.background.identifier else { return nil }
        let remote = RemoteSession(
            ClientMessage.Attachment(
                identifier: identifier, settings: settings.backgroundSettings(policy, memory), takesEvents: takesEvents,
                // The program was started, whatever the session is that it was started for.
                wasLaunched: !launchedFor.isEmpty), isAwaited: launchedFor.contains(identifier))
        return remote
    }

    /// A session has its tasks: what the program says of its events is for this one.
    static func joined(_ remote: RemoteSession) {
        state.withLock { $0.sessions[remote.identifier] = WeakRemote(remote: remote) }
    }

    /// What the program was started for and has not heard of; told once.
    static func takeAwaited() -> [String] {
        state.withLock { state in
            defer { state.awaited = [] }
            return state.awaited
        }
    }

    /// The program has dealt with a session's events.
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
    /// Why no task of such a session can be carried out; nil where they can.
    var backgroundObjection: LoadError? {
        guard let identifier = background.identifier else { return nil }
        if identifier.isEmpty { return LoadError(.unknown, "a background session needs an identifier that is not empty") }
        if identifier.utf8.count > 1024 || identifier.utf8.contains(0) {
            return LoadError(.unknown, "the identifier of a background session has at most 1024 bytes, none of which is zero")
        }
        let isExtension = Bundle.main.bundleURL.pathExtension == "appex"
        if background.sharedContainer?.isEmpty ?? isExtension {
            return LoadError(
                .backgroundSessionNeedsContainer,
                "a background session of an extension needs a sharedContainerIdentifier that is not empty")
        }
        return nil
    }

    /// Those that the daemon finds in no file.
    private static func credentials(in store: CredentialStore, isKept: Bool) -> [BackgroundSettings.KnownCredential] {
        var known: [BackgroundSettings.KnownCredential] = []
        for (space, credentials) in store.all() {
            let preferred = store.defaultCredential(for: space)
            for credential in credentials.values where !isKept || credential.persistence == .forSession {
                known.append(.init(space: space, credential: credential, isDefault: credential == preferred))
            }
        }
        return Array(known.prefix(1000))
    }

    func backgroundSettings(_ policy: SessionPolicy, _ memory: SessionMemory) -> BackgroundSettings {
        var result = BackgroundSettings()
        result.policy = policy
        result.policy.waitsForConnectivity = true
        result.proxies = proxyRules()
        if policy.trustRoots.isEmpty {
            let current = FileManager.default.currentDirectoryPath
            func absolute(_ path: String) -> String { path.hasPrefix("/") ? path : current + "/" + path }
            result.rootFile = TrustRoots.file.map(absolute)
            result.rootDirectories = Array(TrustRoots.directories.map(absolute).prefix(64))
        }
        result.security = security
        let data = StoreLocations.dataDirectory(program: ProcessInfo.processInfo.processName)
        if cookieStorage != nil { result.cookies = memory.stores.cookies?.path.map { .file($0) } ?? .memory }
        if let storage = credentialStorage {
            let isKept = storage === URLCredentialStorage.shared && data != nil
            result.credentials = isKept ? data.map { .file($0 + "/credentials") } ?? .memory : .memory
            if let store = memory.stores.credentials { result.knownCredentials = Self.credentials(in: store, isKept: isKept) }
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
