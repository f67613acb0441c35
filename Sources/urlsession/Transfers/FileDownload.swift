//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import Synchronization
import URLLoading

/// Downloads one file of `urlsession download`.
struct FileDownload {
    let url: String
    let result: DownloadCommand.Result
    let file: OutputFileOptions
    let options: RequestOptions

    func run() async throws {
        let prepared = try options.prepared(url)
        let place = try DownloadFiles(output: result.output, url: prepared.url, file)
        try ResumePosition.claim(place.path, continues: result.resume)
        var mayBePartial = result.resume && place.resumeData() == nil
        if mayBePartial, PartialFile(place.path) == nil {
            options.say("nothing to resume; starting over")
            mayBePartial = false
        }
        var isFirst = true
        try await options.reporting(prepared) { report in
            try await options.retries.repeating(say: options.say) { attempts in
                // Like an earlier run, a failed attempt may have left resume data.
                let data = isFirst && !result.resume ? nil : place.resumeData()
                isFirst = false
                if mayBePartial, data == nil, let partial = PartialFile(place.path) {
                    guard case .refused(let reason) = try await continuePartialFile(from: partial, prepared, attempts, report)
                    else { return }
                    mayBePartial = false
                    options.say("starting over: \(reason)")
                } else if let data {
                    guard case .refused(let reason) = try await load(prepared, to: place, resuming: data, attempts, report) else {
                        return
                    }
                    options.say("starting over: \(reason)")
                }
                place.removeRemains()
                if result.segments > 1, try await loadParts(prepared, to: place, attempts, report) { return }
                _ = try await load(prepared, to: place, resuming: nil, attempts, report)
            }
        }
    }

    private func plan(_ attempts: RetryOptions.Attempts) -> TransferObserver.Plan {
        var plan = options.plan(failsOnHTTPError: true, attempts: attempts)
        plan.maximumSize = file.maximumSize?.bytes
        return plan
    }

    private enum Ending {
        case done
        /// The download cannot be resumed, for this reason.
        case refused(String)
    }

    /// Loads the file in parts; returns false if the file must be loaded over one connection.
    private func loadParts(
        _ prepared: PreparedLoad, to place: DownloadFiles, _ attempts: RetryOptions.Attempts, _ report: LoadReport
    ) async throws -> Bool {
        try place.prepare()
        let whole = place.partFolder + "/complete"
        let parts = SegmentedDownload(
            prepared, request(prepared, to: place), plan(attempts), to: whole, meter: options.silent ? nil : ProgressMeter())
        let interruption = Interruption { parts.cancel() }
        do {
            let ending = try await parts.load(result.segments) { outcome in
                report.note(outcome, file: place.path)
                try options.conclude(outcome)
            }
            _ = await interruption.end()
            guard case .done(let outcome) = ending else {
                if case .refused(let reason) = ending { options.say("using one connection: \(reason)") }
                prepared.configuration.omittedHeaders = options.common.omittedHeaders
                return false
            }
            try result.checksum?.check(whole)
            let path = try place.take(URL(fileURLWithPath: whole), outcome.response)
            report.note(outcome, file: path)
            place.removeRemains()
            try file.date(path, by: outcome.response, always: result.timestamping)
            options.say("saved as \(path)")
            return true
        } catch {
            _ = await interruption.end()
            place.removeRemains()
            throw interruption.happened ? ToolFailure(130, "interrupted; a download in parts cannot be resumed") : error
        }
    }

    private func request(_ prepared: PreparedLoad, to place: DownloadFiles) -> URLRequest {
        var request = options.request(for: prepared.url)
        if let field = condition(of: place)?.field {
            request.setValue(field.value, forHTTPHeaderField: field.name)
            request.cachePolicy = .reloadIgnoringLocalCacheData
        }
        return request
    }

    private func condition(of place: DownloadFiles) -> TimeCondition? {
        result.timestamping ? TimeCondition(changedAfter: place.path) : nil
    }

    private func load(
        _ prepared: PreparedLoad, to place: DownloadFiles, resuming data: Data?, _ attempts: RetryOptions.Attempts,
        _ report: LoadReport
    ) async throws -> Ending {
        try place.prepare()
        let target = Mutex(place.path)
        let isUnchanged = Mutex(false)
        let condition = condition(of: place)
        let observer = TransferObserver(
            plan: plan(attempts), answers: prepared.answers, sink: BodySink(path: nil),
            meter: options.silent ? nil : ProgressMeter(),
            // Errors are ignored, because the data is needed only if the tool is killed.
            saveResumeData: { data in try? place.keep(data) },
            moveDownloadedFile: { location, response in
                // A server may have ignored the header field of the condition.
                if let condition, let response = response as? HTTPURLResponse, !condition.isMet(by: response) {
                    return isUnchanged.withLock { $0 = true }
                }
                try result.checksum?.check(location.path)
                let path = try place.take(location, response)
                target.withLock { $0 = path }
            }
        )
        let session = URLSession(configuration: prepared.configuration, delegate: observer, delegateQueue: nil)
        let task =
            if let data {
                session.downloadTask(with: options.request(for: prepared.url), resumeFrom: data)
            } else {
                session.downloadTask(with: request(prepared, to: place))
            }
        let interruption = Interruption { await task.cancelByProducingResumeData() }
        let outcome = await observer.load(task)
        let produced = await interruption.end()
        session.finishTasksAndInvalidate()
        report.note(outcome, file: target.withLock { $0 })

        if interruption.happened, outcome.error != nil {
            throw try interrupted(place, produced ?? nil)
        }
        if data != nil, let error = outcome.error, isRefusal(error, outcome) {
            return .refused(ToolFailure.describe(error))
        }
        do {
            try options.conclude(outcome)
        } catch {
            try clean(place, after: outcome, wasResumed: data != nil)
            throw error
        }
        place.removeRemains()
        if isUnchanged.withLock({ $0 }) {
            options.say("\(place.path) is unchanged on the server")
            return .done
        }
        try file.date(target.withLock { $0 }, by: outcome.response, always: result.timestamping)
        let size = outcome.offset.map { " (resumed at \(ByteText.size($0)))" } ?? ""
        options.say("saved as \(target.withLock { $0 })\(size)")
        return .done
    }

    /// Continues a partial file that another program has left under the destination's name.
    private func continuePartialFile(
        from partial: PartialFile, _ prepared: PreparedLoad, _ attempts: RetryOptions.Attempts, _ report: LoadReport
    ) async throws -> Ending {
        let judgement = Mutex<PartialFile.Judgement?>(nil)
        let sink = BodySink(path: partial.path, appends: true)
        let observer = TransferObserver(
            plan: plan(attempts), answers: prepared.answers, sink: sink,
            meter: options.silent ? nil : ProgressMeter(),
            objection: { response in
                guard let response = response as? HTTPURLResponse else {
                    judgement.withLock { $0 = .refused("the server does not say which part it sends") }
                    return ToolFailure(0, nil)
                }
                guard response.statusCode < 400 || response.statusCode == 416 else {
                    return nil
                }
                // Starting over would replace the file with the body of the redirect response.
                if response.statusCode >= 300, response.statusCode < 400 {
                    return ToolFailure(33, "cannot continue \(partial.path): the server answered \(response.statusCode)")
                }
                let found = partial.judge(response)
                judgement.withLock { $0 = found }
                if case .isRemainder = found { return nil }
                return ToolFailure(0, nil)
            }
        )
        let session = URLSession(configuration: prepared.configuration, delegate: observer, delegateQueue: nil)
        var request = options.request(for: prepared.url)
        request.setValue(partial.range, forHTTPHeaderField: "Range")
        request.cachePolicy = .reloadIgnoringLocalCacheData
        let outcome = await observer.load(session.dataTask(with: request))
        session.finishTasksAndInvalidate()
        report.note(outcome, file: partial.path)
        switch judgement.withLock({ $0 }) {
        case .refused(let reason): return .refused(reason)
        case .isComplete:
            // The file was already complete, and is kept.
            try result.checksum?.check(partial.path)
            options.say("\(partial.path) is complete")
            return .done
        case .isRemainder, nil: break
        }
        let closing = Result { try sink.close() }
        do {
            try options.conclude(outcome)
            if case (.isRemainder(let length), .success) = (judgement.withLock { $0 }, closing), outcome.received != length {
                throw ToolFailure(18, "the server sent \(outcome.received) of the \(length) bytes that it announced")
            }
        } catch {
            options.say("the partial file is kept; resume with: \(continuation(partial.path))")
            throw error
        }
        try closing.get()
        try checkWhole(partial.path)
        try file.date(partial.path, by: outcome.response)
        options.say("saved as \(partial.path) (resumed at \(ByteText.size(partial.size)))")
        return .done
    }

    /// Checks a file's checksum, and removes the file if the checksum does not match.
    private func checkWhole(_ path: String) throws(ToolFailure) {
        do {
            try result.checksum?.check(path)
        } catch {
            if error.code == 32 { unlink(path) }
            throw error
        }
    }

    private func interrupted(_ place: DownloadFiles, _ data: Data?) throws -> ToolFailure {
        guard let data else {
            place.removeRemains()
            return ToolFailure(130, "interrupted; this download cannot be resumed")
        }
        try place.keep(data)
        return ToolFailure(130, "interrupted; resume with: \(continuation(place.path))")
    }

    /// Keeps the received data if the download can be resumed, keeps earlier data after an HTTP error other than 404, 410 and 416,
    /// and otherwise removes the data.
    private func clean(_ place: DownloadFiles, after outcome: TransferObserver.State, wasResumed: Bool) throws {
        if wasResumed, outcome.error == nil, let status = (outcome.response as? HTTPURLResponse)?.statusCode,
            status >= 400, ![404, 410, 416].contains(status)
        {
            return options.say("the earlier data is kept; resume with: \(continuation(place.path))")
        }
        guard let data = (outcome.error as? URLError)?.downloadTaskResumeData else {
            return place.removeRemains()
        }
        try place.keep(data)
        options.say("resume with: \(continuation(place.path))")
    }

    /// Whether the load failed because the resume data was invalid: no request was sent, and no address was tried.
    private func isRefusal(_ error: any Error, _ outcome: TransferObserver.State) -> Bool {
        // With new resume data, the download can be resumed.
        guard outcome.response == nil, outcome.failure == nil, (error as? URLError)?.downloadTaskResumeData == nil else {
            return false
        }
        switch ToolFailure(error, answered: false, received: 0, expected: -1).code {
        case 6, 7, 8, 28, 35, 42, 47, 52, 58, 60, 67: return false
        default: return true
        }
    }

    private func continuation(_ path: String) -> String {
        let quoted = [path, RequestOptions.hidingUser(url)].map {
            "'" + $0.replacingOccurrences(of: "'", with: #"'\''"#) + "'"
        }
        return "urlsession download --resume -o \(quoted[0]) \(quoted[1])"
    }
}
