// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import LoadingEngine
import LoadingModel
import LoadingStores
import LoadingTrust
import NIOCore
import NetworkPaths

struct SessionName: Hashable {
    var program: String
    var identifier: String
}

/// A background session of a program.
///
/// Confined to the desk.
final class Session {
    let id: Int64
    /// The path of the program's executable.
    let program: String
    let identifier: String
    /// The folder of the session's files in the spool.
    let folder: String
    var record: SessionRecord
    var settings: BackgroundSettings
    /// The settings as stored on disk.
    var encodedSettings: [UInt8]
    var isSaved: Bool
    var transfers: [TaskID: Transfer] = [:]
    var pendingRemovals = PendingRemovals()
    /// The number of running transfers, of transfers that need the program's decision, and of transfers with a durable end.
    private(set) var runningCount = 0
    var askingCount = 0
    private(set) var endedCount = 0
    /// The connection of the process that has joined the session, if any.
    var client: ClientConnection?
    /// Whether the session's state is being sent to the program; the program receives no events before all of it was sent.
    var isAttaching = false
    var takesEvents = false
    var launch: SessionLaunch
    /// Whether the session's settings could not be read; if so, its unfinished transfers have failed.
    var isUnreadable: Bool
    private var engine: (any LoadingService)?
    private var engineSettings: [UInt8] = []

    init(_ row: TransferStore.SessionRow, _ settings: BackgroundSettings?, folder: String, isSaved: Bool) {
        (id, program, identifier, encodedSettings) = (row.id, row.program, row.identifier, row.settings)
        record = SessionRecord.decoded(row.state) ?? SessionRecord()
        self.settings = settings ?? BackgroundSettings()
        isUnreadable = settings == nil
        launch = SessionLaunch(isKept: record.launches != LaunchLimit())
        self.folder = folder
        self.isSaved = isSaved
    }

    var name: SessionName { SessionName(program: program, identifier: identifier) }

    var row: TransferStore.SessionRow {
        TransferStore.SessionRow(
            id: id, program: program, identifier: identifier, settings: encodedSettings, state: record.encoded)
    }

    /// Updates the counts for a transfer that changed its state.
    func count(_ before: TransferMachine?, _ after: TransferMachine) {
        runningCount += (after.hasAttempt ? 1 : 0) - (before?.hasAttempt == true ? 1 : 0)
        endedCount += (after.state == .ended ? 1 : 0) - (before?.state == .ended ? 1 : 0)
    }

    /// Whether the program receives events.
    var isListening: Bool { client != nil && takesEvents && !isAttaching }

    /// Whether the last process that joined the session has ended; false until a process has connected to this daemon.
    var hasProgramEnded = false

    /// Whether the program can answer questions, now or after it has received the session's state.
    var canAnswer: Bool { client != nil && takesEvents }

    /// Returns the session's engine, which is created when it is first needed, and again after the session's settings have changed.
    func service(of store: TransferStore) -> any LoadingService {
        if let engine, engineSettings == encodedSettings { return engine }
        engine?.invalidate()
        var policy = settings.policy
        policy.temporaryDirectory = folder
        policy.waitsForConnectivity = true
        if policy.trustRoots.isEmpty, settings.rootFile != nil || !settings.rootDirectories.isEmpty {
            policy.trustRoots = TrustRoots.roots(file: settings.rootFile, directories: settings.rootDirectories)
            policy.trustRootsAreTheSystems = true
        }
        // The scheduler enforces the resource timeout, across all attempts.
        policy.resourceTimeout = 0
        policy.maximumCollectedBytes = min(policy.maximumCollectedBytes ?? .max, 16 << 20)
        let made = SessionEngine.make(
            policy: policy, stores: stores(store), security: settings.security, proxies: settings.proxies,
            network: SystemPathMonitor.shared)
        engine = made
        engineSettings = encodedSettings
        return made
    }

    /// Releases the engine with its connections and threads; called when no transfer is running.
    func release() {
        engine?.invalidate()
        engine = nil
    }

    private func stores(_ store: TransferStore) -> SessionStores {
        var stores = SessionStores()
        stores.resumeSeal = store.resumeSeal
        switch settings.cookies {
        case .none: break
        case .memory: stores.cookies = CookieStore(path: nil)
        case .file(let path): stores.cookies = CookieStore.shared(path: path)
        }
        switch settings.strictTransportSecurity {
        case .none: break
        case .memory: stores.strictTransportSecurity = HSTSStore(path: nil)
        case .file(let path): stores.strictTransportSecurity = HSTSStore.shared(path: path)
        }
        switch settings.credentials {
        case .none: break
        case .memory: stores.credentials = CredentialStore(permanent: nil)
        case .file(let path):
            let folders = path.split(separator: "/").dropLast()
            stores.credentials = CredentialStore.other(program: folders.last.map(String.init) ?? "", path: path)
        }
        if let credentials = stores.credentials {
            for known in settings.knownCredentials { known.keep(in: credentials) }
        }
        return stores
    }
}

extension BackgroundSettings.KnownCredential {
    fileprivate func keep(in store: CredentialStore) {
        if isDefault { store.setDefault(credential, for: space) } else { store.set(credential, for: space) }
    }
}

/// The launches of a program for one of its sessions.
struct SessionLaunch {
    /// Whether the daemon has launched the program, and the program has not yet reported that it has processed the events.
    var isUnderWay = false
    /// Whether the launched process has ended before the program joined: it may have started the program and left, as `setsid --fork`
    /// does.
    var isHandedOver = false
    /// The number of the last launch; results of earlier launches may arrive late.
    var number = 0
    /// Why the last launch failed; nil if it succeeded.
    var trouble: String?
    /// The timer for the next check of whether the program must be launched.
    var timer: Scheduled<Void>?
    /// Whether the session's row stores the launch limit, which applies to all sessions of the program.
    var isKept: Bool

    init(isKept: Bool) { self.isKept = isKept }
}

extension Session {
    /// Whether the program can be launched when it is not running.
    var canBeLaunched: Bool { candidate.way != nil }

    var candidate: LaunchCandidate {
        LaunchCandidate(
            session: id, way: settings.sendsLaunchEvents && !record.wasQuit ? settings.launch : nil, isConnected: client != nil,
            isLaunched: launch.isUnderWay, transfers: transfers.count, asking: askingCount, ended: endedCount)
    }
}
