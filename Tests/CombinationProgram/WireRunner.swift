// SPDX-License-Identifier: Apache-2.0

import CombinationModel
import Foundation
import LoadingTestKit
import Synchronization
import URLLoading

/// Runs rows of stream tasks and FTP loads against a server of their own, and compares them with the model.
final class WireRunner: RowRunner {
    private let town: Town
    private let peer: WirePeer

    init(_ town: Town) async throws {
        self.town = town
        let certificates = try TestCertificates.shared.get()
        peer = try await WirePeer(good: certificates.shop, strange: certificates.untrustedShop)
    }

    func stop() { peer.stop() }

    func mustRunAlone(_ row: WireRow) -> Bool { false }

    func run(_ row: WireRow) async -> Finding<WireDimension> {
        await Limited.finding(row) { tell in await self.perform(row, tell) }
    }

    private func perform(_ row: WireRow, _ tell: @Sendable (String) -> Void) async -> Finding<WireDimension> {
        var finding = Finding(row: row, problems: [])
        do {
            tell("the server's port")
            let port = try await peer.ask(.open(row)).port
            defer { Task { [peer] in _ = try? await peer.ask(.on(port, "close")) } }
            let recorder = WireRecorder(row)
            let load = WireLoad(row, port: port, map: town.map, recorder: recorder)
            let outcome = try await load.run(peer, tell)
            // A stream's connection is closed although its session still exists; a control connection of FTP stays idle for a while.
            if row.kind != .stream { load.session.finishTasksAndInvalidate() }
            tell("the end of all connections")
            let sight = try await peer.ask(.on(port, "ended"))
            tell("the end of the session")
            if row.kind == .stream { load.session.finishTasksAndInvalidate() }
            let notes = try await recorder.notes.value { $0.callLog.hasSuffix("I") ? $0 : nil }
            var seen = WireReport(outcome: outcome, logins: sight.told, stored: sight.stored.map { Body.label(of: Array($0)) })
            seen.leaks = sight.leaks
            finding.seen = [seen.description, "the delegate was told \(notes.callLog)"]
            let expected = WireModel.report(of: row)
            if !expected.matches(seen) { finding.problems.append("seen     \(seen)\n    expected \(expected)") }
            let grammar = WireRecorder.grammar(row.kind)
            if (try? Regex("^(?:\(grammar))$").wholeMatch(in: notes.callLog)) == nil {
                finding.problems.append("the delegate calls '\(notes.callLog)' do not match '\(grammar)'")
            }
            if notes.calls.made != notes.calls.answered {
                finding.problems.append("\(notes.calls.answered) of \(notes.calls.made) calls completed")
            }
        } catch {
            finding.problems.append("the row was not carried out: \(error)")
        }
        return finding
    }

    func text(_ finding: Finding<WireDimension>, _ reduced: Finding<WireDimension>, seed: UInt64) -> String {
        (["✘ seed \(seed), row \(finding.row)", "  reduced: swift run CombinationProgram --wire --row \(reduced.row)"]
            + reduced.problems.map { "    " + $0 } + reduced.seen.map { "    " + $0 }).joined(separator: "\n")
    }
}

/// One task of one session.
struct WireLoad {
    let row: WireRow
    /// The server's port, and the one that URLs and protection spaces name.
    private let port: Int, namedPort: Int
    let session: URLSession
    private let recorder: WireRecorder

    init(_ row: WireRow, port: Int, map: TownMap, recorder: WireRecorder) {
        self.row = row
        self.port = port
        namedPort = row.route == .substituted ? map.dead : port
        self.recorder = recorder
        let configuration: URLSessionConfiguration = row.session == .ephemeral ? .ephemeral : .default
        configuration.urlCredentialStorage = row.session == .noCredentials ? nil : URLCredentialStorage()
        if row.login == .storage {
            let space = URLProtectionSpace(
                host: Self.host, port: namedPort, protocol: NSURLProtectionSpaceFTP, realm: nil,
                authenticationMethod: NSURLAuthenticationMethodDefault)
            configuration.urlCredentialStorage?.setDefaultCredential(
                URLCredential(user: "ada", password: "secret", persistence: .forSession), for: space)
        }
        let pin: String? =
            switch row.trust {
            case .pinnedRight: map.pinned
            case .pinnedWrong: TownMap.otherPin
            default: nil
            }
        configuration.appTransportSecurity = TownMap.transportSecurity(pin: pin)
        configuration.timeoutIntervalForRequest = row.end == .silence ? 3 : 20
        if row.trust == .sessionRoots { configuration.tlsTrustRoots = [map.strangeRoot] }
        configuration.requiresSecureFTP = row.tls == .later
        map.setRoute(configuration, by: Route(rawValue: row.route.rawValue) ?? .direct)
        if row.route == .substituted {
            configuration.connectionOptions.substitutions = [.init(of: .init(), with: .init(host: "127.0.0.1", port: port))]
        }
        session = URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
    }

    private static let host = "www.shop.localhost"

    private func url(_ path: String) throws -> URL {
        let user =
            switch row.login {
            case .url: "\(WireModel.right)@"
            case .wrong: "\(WireModel.wrong)@"
            case .none, .storage, .delegateAnswer: ""
            }
        let text = "\(row.tls == .atOnce ? "ftps" : "ftp")://\(user)\(Self.host):\(namedPort)\(path)"
        guard let url = URL(string: text) else { throw URLError(.badURL) }
        return url
    }

    private func task() throws -> URLSessionTask {
        switch row.kind {
        case .stream: return session.streamTask(withHostName: Self.host, port: namedPort)
        case .ftpGet: return session.dataTask(with: try url("/doc"))
        case .ftpList: return session.dataTask(with: try url("/"))
        case .ftpDownload: return session.downloadTask(with: try url("/doc"))
        case .ftpUpload:
            return session.uploadTask(with: URLRequest(url: try url("/up")), from: Data(Body.bytes(WireModel.label)))
        }
    }

    func run(_ peer: WirePeer, _ tell: @Sendable (String) -> Void) async throws -> Outcome {
        let task = try task()
        if let stream = task as? URLSessionStreamTask { converse(stream) }
        if row.moment == .made {
            act(task)
            if row.command == .suspend { task.resume() }
        }
        task.resume()
        if row.session == .finishing { session.finishTasksAndInvalidate() }
        tell("the moment \(row.moment)")
        let hasReachedMoment = await waitForMoment(peer)
        if hasReachedMoment { act(task) }
        tell("the end of the task")
        if hasReachedMoment, row.command != .suspend { _ = try await end() }
        recorder.release()
        _ = try await peer.ask(.on(port, "pass"))
        if hasReachedMoment, row.command == .suspend { task.resume() }
        let outcome = try await end()
        if row.moment == .atEnd { act(task) }
        return outcome
    }

    private func act(_ task: URLSessionTask) {
        switch row.command {
        case .none: break
        case .suspend: task.suspend()
        case .cancel: task.cancel()
        case .invalidate: session.invalidateAndCancel()
        }
    }

    /// Waits for the moment of the command; false if the task ended first.
    private func waitForMoment(_ peer: WirePeer) async -> Bool {
        let (row, port, recorder) = (row, port, recorder)
        guard row.command != .none, row.moment != .made, row.moment != .atEnd else { return false }
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                if row.moment == .challenge { return (try? await recorder.notes.value { $0.held == nil ? nil : true }) ?? false }
                return (try? await peer.ask(.on(port, "reached"))) != nil
            }
            group.addTask {
                _ = try? await recorder.notes.value { $0.isOver ? true : nil }
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }

    /// Waits for the end of the task, and for the completion handlers of its calls.
    private func end() async throws -> Outcome {
        let notes = try await recorder.notes.value { notes in
            notes.isOver && notes.calls.made == notes.calls.answered ? notes : nil
        }
        return notes.callError ?? notes.error ?? Outcome(body: Body.label(of: notes.body))
    }

    // MARK: Streams

    /// Makes all calls of a stream task at once: they are queued until they can be executed.
    private func converse(_ task: URLSessionStreamTask) {
        if row.tls == .later {
            write(task, "STARTTLS\r\n")
            recorder.calls()
            task.readData(ofMinLength: 8, maxLength: 8, timeout: 0) { [recorder] _, _, error in recorder.answered(error) }
        }
        if row.tls != .none { task.startSecureConnection() }
        write(task, "\(WireModel.greeting)\r\n")
        Self.read(task, recorder, timeout: row.end == .silence ? 3 : 0)
    }

    private func write(_ task: URLSessionStreamTask, _ text: String) {
        recorder.calls()
        task.write(Data(text.utf8), timeout: 0) { [recorder] error in recorder.answered(error) }
    }

    /// Reads until the server closes, then closes this side; a task whose read fails is canceled.
    private static func read(_ task: URLSessionStreamTask, _ recorder: WireRecorder, timeout: TimeInterval) {
        recorder.calls()
        task.readData(ofMinLength: 1, maxLength: 65_536, timeout: timeout) { data, atEnd, error in
            if atEnd { task.closeWrite() } else if error != nil { task.cancel() } else { read(task, recorder, timeout: timeout) }
            recorder.answered(error, data)
        }
    }
}
