// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import LoadingModel
import SystemThreads

extension RemoteSession {
    /// Seconds between attempts to connect while no daemon listens.
    private static let pauses = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
    /// The minimum number of seconds between two starts of a daemon.
    private static let startPause = 1.0

    /// Runs the main loop of the session's thread: connects, receives the daemon's messages, and reconnects when the connection
    /// closes.
    func run() {
        var attempt = 0
        var start: StartReport?
        var nextStart = 0.0
        // Of daemons, of daemons that replace another one, and of the service.
        var (silentStarts, silentReplacements, failedStarts) = (VainStarts(), VainStarts(), VainStarts())
        while true {
            guard let end = monitor.locked({ link.isJoining ? attemptsEnd : nil }) else { return }
            let unusable = place.prepare()
            // The replacement of an older daemon may have failed.
            if let reason = replacement?.look() { return lose(reason) }
            if let silent = replacement, silent.isSilent {
                if silentReplacements.areTooMany() { return handle(.lose(silent.silence)) }
                // The next refusal starts another one.
                (versionRefusal, replacement) = (nil, nil)
            }
            if let connection = DaemonConnection.open(place, isUsable: unusable == nil, patience: Int(patience)) {
                silentStarts = VainStarts()
                start = nil
                handle(.opened) { self.connection = connection }
                var (isGreeted, failure) = (false, String?.none)
                let wasSilent = connection.receive { seconds in
                    // Less and less often: each question takes a process.
                    if !isGreeted, seconds & (seconds - 1) == 0 { failure = serviceFailure(connection, &failedStarts) }
                    return failure == nil && seconds < Int(patience)
                } _: {
                    (isGreeted, failedStarts) = (true, VainStarts())
                    receive($0)
                }
                if !isGreeted, failure == nil { failure = serviceFailure(connection, &failedStarts) }
                closed(failure ?? (wasSilent ? silence(connection.log) : "urlsessiond keeps ending; see \(connection.log)"))
                if let failure { return lose(failure) }
                if isGreeted, versionRefusal == nil { silentReplacements = VainStarts() }
                // Pauses, because a daemon that ends when a program joins it may do so on every attempt.
                attempt = isGreeted ? 0 : attempt + 1
                pause(max(0.02, Self.pauses[min(attempt, Self.pauses.count - 1)]))
                continue
            }
            if let reason = unusable ?? start?.look() { return lose(reason) }
            if case .waits(let known)? = start?.word ?? replacement?.word { monitor.locked { obstacle = known } }
            guard Monitor.clock < end else {
                return lose(obstacle ?? "urlsessiond cannot be reached at \(place.socket); see \(place.log)")
            }
            // No daemon listens. A daemon that was started may have ended because an earlier daemon was still shutting down.
            let isSilent = start?.isSilent == true
            if start?.isOver != false, replacement?.isOver != false, isSilent || Monitor.clock >= nextStart {
                if !isSilent {
                    silentStarts = VainStarts()
                } else if let start, silentStarts.areTooMany() {
                    return handle(.lose(start.silence))
                }
                do throws(LoadError) {
                    start = try DaemonStarter.start(place)
                } catch {
                    return handle(.lose(error))
                }
                nextStart = Monitor.clock + Self.startPause
            }
            pause(Self.pauses[min(attempt, Self.pauses.count - 1)])
            attempt += 1
        }
    }

    private func pause(_ seconds: Double) {
        let end = Monitor.clock + seconds
        monitor.locked {
            while link.isJoining, monitor.wait(until: end) {}
        }
    }

    /// The text of the error of a session that a daemon does not answer.
    func silence(_ log: String) -> String { "urlsessiond did not respond within \(Int(patience)) seconds; see \(log)" }

    /// Reconnects, or gives up for a reason if there was no daemon for too long.
    private func closed(_ reason: String) {
        handle(.closed) {
            connection = nil
            if link.isAttached { attemptsEnd = Monitor.clock + patience }
        }
        guard monitor.locked({ link.isJoining && attemptsEnd < Monitor.clock }) else { return }
        lose(versionRefusal?.reason ?? obstacle ?? reason)
    }

    /// Returns why the service manager will not start a daemon for a connection; nil if it still may.
    ///
    /// The library never starts a daemon beside the service manager's socket, except to replace an older one. The next daemon may
    /// work, but not after several that failed.
    private func serviceFailure(_ connection: DaemonConnection, _ failedStarts: inout VainStarts) -> String? {
        guard monitor.locked({ link.isJoining }), let failure = connection.serviceFailure() else { return nil }
        return failedStarts.areTooMany() || failure.isFinal ? failure.message : nil
    }

    private func receive(_ message: DaemonMessage) {
        switch message {
        case .refused(let refusal, let reason): refused(refusal, reason)
        case .attached:
            (versionRefusal, replacement) = (nil, nil)
            monitor.locked { obstacle = nil }
            handle(.received(message))
        default: handle(.received(message))
        }
    }

    private func refused(_ refusal: DaemonMessage.Refusal, _ reason: String) {
        switch refusal {
        case .inUse: handle(.lose(LoadError(.backgroundSessionInUse, reason)))
        case .version:
            let (process, isManagers) = monitor.locked {
                connection?.close()
                return (connection?.process ?? 0, connection?.isManagers == true)
            }
            guard let before = versionRefusal else {
                // The daemon is of an older version: start a daemon of this version to replace it.
                versionRefusal = (process, isManagers, reason)
                do throws(LoadError) {
                    replacement = try DaemonStarter.start(place, replacing: true)
                } catch {
                    handle(.lose(error))
                }
                return
            }
            // The daemon that refused first may not have ended yet. If a different process refuses as well, replacing the daemon
            // does not help.
            if replacement?.word == .listens || !before.isManagers && process != before.process { return lose(reason) }
            // The service manager started the daemon that now listens itself.
            versionRefusal = (process, false, reason)
        case .waiting:
            monitor.locked {
                obstacle = reason
                connection?.close()
            }
        case .outdated, .malformed, .tooMany, .storage: lose(reason)
        }
    }
}
