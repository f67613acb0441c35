//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import URLLoading

/// What the last attempt came to.
final class LoadReport {
    private(set) var outcome: TransferObserver.State?
    private(set) var file: String?

    func note(_ outcome: TransferObserver.State, file: String?) {
        self.outcome = outcome
        self.file = file
    }
}

extension RequestOptions {
    func plan(
        showsHeaders: Bool = false, failsOnHTTPError: Bool, attempts: RetryOptions.Attempts
    ) -> TransferObserver.Plan {
        TransferObserver.Plan(
            redirects: redirects, showsHeaders: showsHeaders, failsOnHTTPError: failsOnHTTPError, isVerbose: common.verbose,
            isSilent: common.silent,
            attempts: attempts, connectTimeout: common.connectTimeout, rate: pace.rate, slowest: pace.slowest,
            recording: archive.recorder.map(LoadRecording.init)
        )
    }

    /// Loads, as often as `--retry` says, to a file or standard output, and writes what `--write-out` wants.
    ///
    /// - Parameters:
    ///   - visit: Where it goes.
    ///   - file: The file; standard output where it is nil.
    ///   - number: Which load of several it is, from 0 on.
    ///   - begin: Makes an observer, and a task of the session.
    ///   - finish: Is given what ended well, and its file.
    /// - Throws: Why the last attempt failed.
    func transfer(
        _ visit: Visit, to file: String?, number: Int = 0,
        _ begin: (URLSession, RetryOptions.Attempts) throws -> (TransferObserver, URLSessionTask),
        finish: (TransferObserver.State, String?) throws -> Void = { _, _ in }
    ) async throws {
        try await reporting(visit, number: number) { report in
            try await retries.repeating(say: say) { attempts in
                let (observer, task) = try begin(SharedSessions.ofThisRun.session(for: visit), attempts)
                let outcome = await observer.load(task)
                report.note(outcome, file: observer.sink.path ?? file)
                try conclude(outcome)
                do throws(BodySink.Failure) {
                    try observer.sink.close()
                } catch {
                    throw ToolFailure(23, error.message)
                }
                try finish(outcome, observer.sink.path)
                if let verdict = outcome.verdict { throw verdict }
            }
        }
    }

    /// Writes at the end, be it good or bad, what `--write-out` wants to know.
    func reporting(_ visit: Visit, number: Int = 0, _ load: (LoadReport) async throws -> Void) async throws {
        let format = try common.writeOut.map { try WriteOut($0) }
        let report = LoadReport()
        var failure: ToolFailure?
        do {
            try await load(report)
        } catch let error as ToolFailure {
            failure = error
        }
        if let format, let outcome = report.outcome {
            let url = visit.url.absoluteString
            try format.write(TransferReport(url: url, number: number, fileName: report.file, outcome: outcome, failure: failure))
        }
        if let failure { throw failure }
    }

    func say(_ line: String) {
        if !common.silent {
            StandardError.print(line)
        }
    }

    /// Shows the metrics where they are wanted, and throws where the load did not end well.
    func conclude(_ outcome: TransferObserver.State) throws {
        if common.metrics, let metrics = outcome.metrics {
            StandardError.write(Waterfall(metrics).text())
        }
        if let failure = outcome.failure {
            throw failure
        }
        // What went wrong while a form was read.
        if let failure = outcome.error as? ToolFailure { throw failure }
        if let error = outcome.error {
            throw ToolFailure(
                error, answered: outcome.response != nil, received: outcome.received,
                expected: outcome.response?.expectedContentLength ?? -1
            )
        }
    }
}
