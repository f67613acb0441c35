// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A server that fails at one step of a load, for every step.
@Suite(.timeLimit(.minutes(3)))
struct FTPFaultTests {
    enum Fault: String, CaseIterable, Sendable {
        case end, reset, halfReply, garbage, busy, refusal, silence, early
    }

    /// What the server replies to: the connection itself, the commands in order, and the end of the data.
    private static let steps = ["", "USER", "PASS", "PWD", "CWD", "TYPE", "SIZE", "EPSV", "MDTM", "RETR", "data"]
    private static let content = [UInt8](repeating: 7, count: 100_000)

    private static func reply(to step: String, dataPort: Int) -> String {
        switch step {
        case "": "220-hello\r\n220 ready\r\n"
        case "USER": "331 who\r\n"
        case "PASS": "230 in\r\n"
        case "PWD": "257 \"/\"\r\n"
        case "SIZE": "213 \(content.count)\r\n"
        case "MDTM": "213 20200203040506\r\n"
        case "EPSV": "229 (|||\(dataPort)|)\r\n"
        case "RETR": "150 here\r\n"
        case "data": "226 done\r\n"
        default: "200 ok\r\n"
        }
    }

    /// Serves the client up to the failing step, then reads whatever the client still sends.
    private static func serve(_ connection: StreamPeer.Connection, _ fault: Fault?, at step: Int, dataPort: Int) throws {
        for (index, name) in steps.enumerated() {
            if index > 0, name != "data" {
                let line = try connection.line()
                guard line.hasPrefix(name) else { throw StreamPeer.Failure(description: "\(line) in place of \(name)") }
            }
            let reply = reply(to: name, dataPort: dataPort)
            guard index == step, let fault else {
                try connection.write(reply)
                continue
            }
            switch fault {
            case .end: return
            case .reset: return connection.reset()
            case .halfReply: return try connection.write(String(reply.prefix(4)))
            case .garbage: try connection.write("what is that?\r\n")
            case .busy: try connection.write("421 bye\r\n")
            case .refusal:
                try connection.write("553 no\r\n")
                // PWD is optional; SIZE and MDTM only describe the file, and are optional, too; PASV can replace EPSV.
                if ["PWD", "SIZE", "MDTM"].contains(name) { continue }
                if name == "EPSV", try connection.line() == "PASV" { try connection.write("553 no\r\n") }
            case .silence: break
            case .early: return try connection.write(reply + "199 and\r\n")
            }
            break
        }
        while let line = try? connection.line(), line != "QUIT" {}
    }

    private func load(_ fault: Fault?, at step: Int) async throws -> Result<Data, any Error> {
        let data = try StreamPeer { try $0.write(Self.content) }
        defer { data.stop() }
        let dataPort = data.port
        let control = try StreamPeer { try Self.serve($0, fault, at: step, dataPort: dataPort) }
        defer { control.stop() }
        let url = try #require(URL(string: "ftp://127.0.0.1:\(control.port)/d/file"))
        var result: Result<Data, any Error> = .success(Data())
        try await withSession {
            // Silence is only detected by the timeout; all other faults are detected before it.
            $0.timeoutIntervalForRequest = fault == .silence ? 0.2 : 30
        } test: { (session) async throws in
            do {
                result = .success(try await session.data(from: url).0)
            } catch {
                result = .failure(error)
            }
        }
        // No connection is left open, and there is no retry.
        try await control.waitForEnds()
        #expect(control.connectionCount == 1)
        return result
    }

    @Test func `without a fault the file is loaded`() async throws {
        #expect(try await load(nil, at: 0).get() == Data(Self.content))
    }

    @Test(arguments: Fault.allCases, Array(steps.indices))
    func `a fault at any step fails the load with one error`(_ fault: Fault, step: Int) async throws {
        let name = Self.steps[step]
        let result = try await load(fault, at: step)
        // The last reply ends the load, whatever follows it.
        if fault == .early && name == "data" || fault == .refusal && ["PWD", "SIZE", "MDTM"].contains(name) {
            #expect(try result.get() == Data(Self.content))
            return
        }
        let error = #expect(throws: URLError.self) { try result.get() }
        let expected: Set<URLError.Code> =
            switch fault {
            case .reset: name.isEmpty ? [.networkConnectionLost, .cannotConnectToHost] : [.networkConnectionLost]
            case .end, .halfReply: [.networkConnectionLost]
            case .garbage: [.cannotParseResponse]
            case .busy: [name.isEmpty ? .cannotConnectToHost : .networkConnectionLost]
            case .refusal:
                switch name {
                case "": [.cannotConnectToHost]
                case "USER", "PASS": [.userAuthenticationRequired]
                case "CWD", "RETR": [.noPermissionsToReadFile]
                case "EPSV": [.noPermissionsToReadFile]
                case "TYPE": [.badServerResponse]
                default: [.noPermissionsToReadFile]
                }
            case .silence: [.timedOut]
            case .early: [.networkConnectionLost, .badServerResponse]
            }
        #expect(expected.contains(try #require(error?.code)), "\(String(describing: error))")
        #expect(error?.failingURL?.scheme == "ftp")
        #expect(error?.localizedDescription.isEmpty == false)
    }
}
