// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// Downloads one file of `urlsession download`.
struct FileDownload {
    private let url: String
    private let result: DownloadCommand.Result
    private let file: OutputFileOptions
    private let options: RequestOptions
    private let prepared: PreparedLoad
    private let place: DownloadFiles
    private let report = LoadReport()

    init(url: String, result: DownloadCommand.Result, file: OutputFileOptions, options: RequestOptions) throws {
        self.url = url
        self.result = result
        self.file = file
        self.options = options
        prepared = try options.prepared(url)
        place = try DownloadFiles(output: result.output, url: prepared.url, file)
    }

    func run() async throws {
        try ResumePosition.claim(place.path, continues: result.resume)
        var mayBePartial = result.resume && place.resumeData() == nil
        if mayBePartial, PartialFile(place.path) == nil {
            options.say("nothing to resume; starting over")
            mayBePartial = false
        }
        var isFirst = true
        try await options.reporting(prepared, report) {
            try await options.retries.repeating(say: options.say) { attempts in
                // Like an earlier run, a failed attempt may have left resume data.
                let data = isFirst && !result.resume ? nil : place.resumeData()
                isFirst = false
                if mayBePartial, data == nil, let partial = PartialFile(place.path) {
                    guard let reason = try await continuePartialFile(from: partial, attempts) else { return }
                    mayBePartial = false
                    options.say("starting over: \(reason)")
                } else if let data {
                    guard let reason = try await load(resuming: data, attempts) else { return }
                    options.say("starting over: \(reason)")
                }
                place.removeRemains()
                if result.segments > 1, try await loadParts(attempts) { return }
                _ = try await load(resuming: nil, attempts)
            }
        }
    }

    private func plan(_ attempts: RetryOptions.Attempts) -> TransferObserver.Plan {
        var plan = options.plan(failsOnHTTPError: true, attempts: attempts)
        plan.maximumSize = file.maximumSize?.bytes
        return plan
    }

    /// Loads the file in parts; returns false if the file must be loaded over one connection.
    private func loadParts(_ attempts: RetryOptions.Attempts) async throws -> Bool {
        try place.prepare()
        let whole = place.partFolder + "/complete"
        let parts = SegmentedDownload(prepared, request(condition), plan(attempts), to: whole)
        let interruption = Interruption { parts.cancel() }
        do {
            let ending = try await parts.load(result.segments) { outcome in
                report.note(outcome, file: place.path)
                try options.conclude(outcome)
            }
            _ = await interruption.end()
            switch ending {
            case .refused(let reason):
                options.say("using one connection: \(reason)")
                prepared.configuration.omittedHeaders = options.common.omittedHeaders
                return false
            case .done(let outcome):
                try result.checksum?.check(whole)
                let path = try place.take(URL(fileURLWithPath: whole), outcome.response)
                report.note(outcome, file: path)
                place.removeRemains()
                try file.date(path, by: outcome.response, always: result.timestamping)
                options.say("saved as \(path)")
                return true
            }
        } catch {
            _ = await interruption.end()
            place.removeRemains()
            throw interruption.happened ? ToolFailure(130, "interrupted; a download in parts cannot be resumed") : error
        }
    }

    private func request(_ condition: TimeCondition?) -> URLRequest {
        var request = options.request(for: prepared.url)
        if let field = condition?.field {
            request.setValue(field.value, forHTTPHeaderField: field.name)
            request.cachePolicy = .reloadIgnoringLocalCacheData
        }
        return request
    }

    private var condition: TimeCondition? { result.timestamping ? TimeCondition(changedAfter: place.path) : nil }

    /// Loads the file; returns the reason why it cannot be resumed, or nil.
    private func load(resuming data: Data?, _ attempts: RetryOptions.Attempts) async throws -> String? {
        try place.prepare()
        let target = Mutex(place.path)
        let isUnchanged = Mutex(false)
        let condition = condition
        var plan = plan(attempts)
        // Errors are ignored, because the data is needed only if the tool is killed.
        plan.saveResumeData = { [place] data in try? place.keep(data) }
        plan.moveDownloadedFile = { [place, checksum = result.checksum] location, response in
            // A server may have ignored the header field of the condition.
            if let condition, let response = response as? HTTPURLResponse, !condition.isMet(by: response) {
                return isUnchanged.withLock { $0 = true }
            }
            try checksum?.check(location.path)
            let path = try place.take(location, response)
            target.withLock { $0 = path }
        }
        var interruption: Interruption<Data?>?
        let outcome = await TransferObserver(plan, prepared.answers).load(in: prepared.configuration) { session in
            let task =
                if let data {
                    session.downloadTask(with: options.request(for: prepared.url), resumeFrom: data)
                } else {
                    session.downloadTask(with: request(condition))
                }
            interruption = Interruption { await task.cancelByProducingResumeData() }
            return task
        }
        let produced = await interruption?.end()
        let path = target.withLock { $0 }
        report.note(outcome, file: path)

        if interruption?.happened == true, outcome.error != nil { throw try interrupted(produced ?? nil) }
        if data != nil, let error = outcome.error, isRefusal(error, outcome) { return ToolFailure.describe(error) }
        do {
            try options.conclude(outcome)
        } catch {
            try clean(after: outcome, wasResumed: data != nil)
            throw error
        }
        place.removeRemains()
        if isUnchanged.withLock({ $0 }) {
            options.say("\(place.path) is unchanged on the server")
            return nil
        }
        try file.date(path, by: outcome.response, always: result.timestamping)
        options.say("saved as \(path)\(outcome.offset.map { " (resumed at \(ByteText.size($0)))" } ?? "")")
        return nil
    }

    /// Continues a partial file that another program has left under the destination's name; returns the reason why it cannot be
    /// continued, or nil.
    private func continuePartialFile(from partial: PartialFile, _ attempts: RetryOptions.Attempts) async throws -> String? {
        let judgement = Mutex<PartialFile.Judgement?>(nil)
        let sink = BodySink(path: partial.path, appends: true)
        var plan = plan(attempts)
        plan.objection = { response in
            let status = (response as? HTTPURLResponse)?.statusCode
            // Starting over would replace the file with the body of the redirect response.
            if let status, 300..<400 ~= status {
                return ToolFailure(33, "cannot continue \(partial.path): the server answered \(status)")
            }
            guard let found = partial.judge(response) else { return nil }
            judgement.withLock { $0 = found }
            if case .isRemainder = found { return nil }
            return ToolFailure(0, nil)
        }
        var request = options.request(for: prepared.url)
        request.setValue(partial.range, forHTTPHeaderField: "Range")
        request.cachePolicy = .reloadIgnoringLocalCacheData
        let outcome = await TransferObserver(plan, prepared.answers, to: sink).load(in: prepared.configuration) {
            $0.dataTask(with: request)
        }
        report.note(outcome, file: partial.path)
        var length: Int64?
        switch judgement.withLock({ $0 }) {
        case .refused(let reason): return reason
        case .isComplete:
            // The file was already complete, and is kept.
            try result.checksum?.check(partial.path)
            options.say("\(partial.path) is complete")
            return nil
        case .isRemainder(let rest): length = rest
        case nil: break
        }
        let closing = Result { try sink.close() }
        do {
            try options.conclude(outcome)
            if case .success = closing, let length, outcome.received != length {
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
        return nil
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

    private func interrupted(_ data: Data?) throws -> ToolFailure {
        guard let data else {
            place.removeRemains()
            return ToolFailure(130, "interrupted; this download cannot be resumed")
        }
        try place.keep(data)
        return ToolFailure(130, "interrupted; resume with: \(continuation(place.path))")
    }

    /// Keeps the received data if the download can be resumed, keeps earlier data after an HTTP error other than 404, 410 and 416,
    /// and otherwise removes the data.
    private func clean(after outcome: TransferObserver.State, wasResumed: Bool) throws {
        if wasResumed, outcome.error == nil, let status = outcome.httpResponse?.statusCode, status >= 400,
            ![404, 410, 416].contains(status)
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
        switch ToolFailure(error).code {
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
