// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// The outcome of the last attempt.
final class LoadReport {
    fileprivate var outcome: TransferObserver.State?
    fileprivate var file: String?

    func note(_ outcome: TransferObserver.State, file: String?) { (self.outcome, self.file) = (outcome, file) }
}

extension RequestOptions {
    func plan(
        showsHeaders: Bool = false, failsOnHTTPError: Bool, showsProgress: Bool = true, attempts: RetryOptions.Attempts
    ) -> TransferObserver.Plan {
        TransferObserver.Plan(
            redirects: redirects, showsHeaders: showsHeaders, failsOnHTTPError: failsOnHTTPError, isVerbose: common.verbose,
            isSilent: common.silent, attempts: attempts, connectTimeout: common.connectTimeout, rate: pace.rate,
            slowest: pace.slowest, recording: archive.recorder.map(LoadRecording.init),
            meter: showsProgress && !common.silent ? ProgressMeter() : nil)
    }

    /// Performs a load with the retries of `--retry`, and writes the output of `--write-out`.
    ///
    /// - Parameters:
    ///   - prepared: The load's URL and configuration.
    ///   - file: The file; nil for standard output.
    ///   - number: The index of the load.
    ///   - begin: Creates an observer, and a task in the session.
    ///   - finish: Called with the outcome and the file of a successful load.
    /// - Throws: The failure of the last attempt.
    func transfer(
        _ prepared: PreparedLoad, to file: String?, number: Int = 0,
        _ begin: (URLSession, RetryOptions.Attempts) throws -> (TransferObserver, URLSessionTask),
        finish: (TransferObserver.State, String?) throws -> Void = { _, _ in }
    ) async throws {
        let report = LoadReport()
        try await reporting(prepared, report, number: number) {
            try await retries.repeating(say: say) { attempts in
                let (observer, task) = try SharedSessions.current.make(for: prepared) { try begin($0, attempts) }
                let outcome = await observer.load(task)
                report.note(outcome, file: observer.sink.path ?? file)
                try conclude(outcome)
                try observer.sink.close()
                try finish(outcome, observer.sink.path)
                if let verdict = outcome.verdict { throw verdict }
            }
        }
    }

    /// Performs a load, and then writes the output of `--write-out`, whether or not the load succeeded.
    func reporting(
        _ prepared: PreparedLoad, _ report: LoadReport, number: Int = 0, _ load: () async throws -> Void
    ) async throws {
        let format = try common.writeOut.map { try WriteOut($0) }
        var failure: ToolFailure?
        do {
            try await load()
        } catch let error as ToolFailure {
            failure = error
        }
        if let format, let outcome = report.outcome {
            let url = prepared.url.absoluteString
            try format.write(TransferReport(url: url, number: number, fileName: report.file, outcome: outcome, failure: failure))
        }
        if let failure { throw failure }
    }

    func say(_ line: String) {
        if !common.silent {
            StandardError.print(line)
        }
    }

    /// Shows the metrics if they are requested, and throws if the load failed.
    func conclude(_ outcome: TransferObserver.State) throws {
        if common.metrics, let metrics = outcome.metrics {
            StandardError.write(Waterfall(metrics).text())
        }
        if let failure = outcome.failure {
            throw failure
        }
        // An error that occurred while a form was read.
        if let failure = outcome.error as? ToolFailure { throw failure }
        if let error = outcome.error {
            throw ToolFailure(
                error, answered: outcome.response != nil, received: outcome.received,
                expected: outcome.response?.expectedContentLength ?? -1
            )
        }
    }
}
