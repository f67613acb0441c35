//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import LoadingTestKit

/// The built `urlsession`, run as a user runs it.
final class Tool: Sendable {
    struct Result: Sendable {
        var code: Int32
        var output: Data
        var errors: String
        var text: String { String(decoding: output, as: UTF8.self) }
    }

    struct NotBuilt: Error {
        let path: String
    }

    private struct Progress: Sendable {
        var output = Data()
        var errors = Data()
        var openPipes = 2
        var code: Int32?
        var errorText: String { String(decoding: errors, as: UTF8.self) }
    }

    private let progress = Watched(Progress())
    private let processID: Int32
    /// Where its cookies and responses are: never among the user's.
    private let home: TemporaryDirectory

    /// Beside the test bundle, where the build puts both.
    private static func path() throws -> String {
        let bundle = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        for start in [bundle] + CommandLine.arguments {
            let path = URL(fileURLWithPath: start).deletingLastPathComponent().appendingPathComponent("urlsession").path
            if FileManager.default.isExecutableFile(atPath: path) { return path }
        }
        throw NotBuilt(path: bundle)
    }

    /// Starts the tool in a folder, with standard input from a file or from nothing.
    ///
    /// - Parameters:
    ///   - home: Where cookies and responses are kept; nil for a place of its own.
    ///   - preparation: Shell commands that the tool's process carries out before it becomes the tool.
    init(
        _ arguments: [String], in folder: TemporaryDirectory, home: TemporaryDirectory? = nil, input: URL? = nil,
        environment: [String: String] = [:], preparation: String? = nil
    ) throws {
        let home = try home ?? TemporaryDirectory()
        self.home = home
        let process = Process()
        let path = try Self.path()
        process.executableURL = URL(fileURLWithPath: preparation == nil ? path : "/bin/sh")
        process.arguments = (preparation.map { ["-c", $0 + #"; exec "$0" "$@""#, path] } ?? []) + arguments
        process.environment = ProcessInfo.processInfo.environment
            .merging(["XDG_DATA_HOME": home.path + "/data", "XDG_CACHE_HOME": home.path + "/cache"]) { $1 }
            .merging(environment) { $1 }
        process.currentDirectoryURL = folder.url
        process.standardInput = try input.map { try FileHandle(forReadingFrom: $0) } ?? FileHandle.nullDevice
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        let progress = progress
        Self.gather(output) { data in
            progress.change { $0.output += data }
        } atEnd: {
            progress.change { $0.openPipes -= 1 }
        }
        Self.gather(errors) { data in
            progress.change { $0.errors += data }
        } atEnd: {
            progress.change { $0.openPipes -= 1 }
        }
        process.terminationHandler = { process in
            let code = process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
            progress.change { $0.code = code }
        }
        try process.run()
        processID = process.processIdentifier
    }

    private static func gather(
        _ pipe: Pipe, _ take: @escaping @Sendable (Data) -> Void, atEnd: @escaping @Sendable () -> Void
    ) {
        let handle = pipe.fileHandleForReading
        Thread.detachNewThread {
            while true {
                let data = handle.availableData
                guard !data.isEmpty else {
                    // The handle does not go with its thread.
                    try? handle.close()
                    return atEnd()
                }
                take(data)
            }
        }
    }

    /// Presses Ctrl-C.
    func interrupt() {
        kill(processID, SIGINT)
    }

    /// Waits until standard error has shown this text.
    func shown(_ text: String) async throws {
        try await progress.value { $0.errorText.contains(text) || $0.code != nil ? () : nil }
    }

    /// Waits for the end; where the test may not wait any longer, the tool is stopped.
    func result() async throws -> Result {
        do {
            return try await progress.value { progress in
                guard let code = progress.code, progress.openPipes == 0 else { return nil }
                return Result(code: code, output: progress.output, errors: progress.errorText)
            }
        } catch {
            kill(processID, SIGKILL)
            throw error
        }
    }

    static func run(
        _ arguments: [String], in folder: TemporaryDirectory? = nil, home: TemporaryDirectory? = nil, input: URL? = nil,
        environment: [String: String] = [:], preparation: String? = nil
    ) async throws -> Result {
        let folder = try folder ?? TemporaryDirectory()
        let tool = try Tool(
            arguments, in: folder, home: home, input: input, environment: environment, preparation: preparation
        )
        return try await tool.result()
    }
}
