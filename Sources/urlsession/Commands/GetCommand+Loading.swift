// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// Performs a load of `get`.
extension GetCommand {
    func load(_ order: LoadOrder, cookies: HTTPCookieStorage?, heads: BodySink?) async throws {
        let prepared = try options.prepared(order.address, cookies: cookies)
        let source = try order.upload.map { path throws(ToolFailure) in try UploadSource(path, rate: options.pace.rate) }
        if source?.isPipe == true, options.retries.retry > 0 { throw ToolFailure(2, "--retry cannot send a pipe twice") }
        var request = options.request(for: source?.target(prepared.url) ?? prepared.url)
        var content = try body.add(
            to: &request, keepsMethod: options.common.method != nil, omitting: options.common.omittedHeaders)
        if let source {
            content = .upload(source)
            request.httpMethod = options.method ?? "PUT"
        }
        if result.head {
            request.httpMethod = "HEAD"
            // Without Accept-Encoding, the response to HEAD describes the file without content coding.
            if !compressed { prepared.configuration.omittedHeaders.insert("accept-encoding") }
        }
        let condition = try addConditions(to: &request, prepared)
        if offline {
            request.cachePolicy = .returnCacheDataDontLoad
        } else if !cached, !options.ignoresCache {
            RequestOptions.askServer(&request)
        }
        if let count = `repeat` {
            let repetition = RepeatedRequest(
                request: request, count: count, parallel: address.most ?? (address.parallel ? 50 : 1), prepared: prepared,
                redirects: options.redirects)
            try await repetition.run(isSilent: options.silent && !options.showsErrors)
            return
        }
        let file = try result.file(for: order, place)
        if let file, file != "-", source == nil { try ResumePosition.claim(file, continues: result.continueAt != nil) }
        let continuation = try continuation(of: &request, prepared, file: file, isUpload: source != nil)
        content.slow(&request, to: options.pace.rate)
        let name = Mutex<String?>(nil)
        let written = Mutex<BodySink?>(nil)
        do {
            try await options.transfer(prepared, to: file, number: order.number) { [request, content] session, attempts in
                // A retry writes to the file of the first attempt.
                let own = result.keepsFiles ? written.withLock { $0?.openedPath } : nil
                let sink = BodySink(
                    path: own ?? file, appends: continuation?.isFile == true, refusesBinaryOnTerminal: true,
                    keepsExistingFiles: result.keepsFiles && own == nil)
                written.withLock { $0 = sink }
                var plan = options.plan(
                    showsHeaders: result.include || result.head,
                    failsOnHTTPError: result.fail || result.failsWithBody || continuation != nil,
                    showsProgress: !needless.needless.contains(.noProgressMeter) && !address.parallel && file != nil
                        && file != "-",
                    attempts: attempts)
                plan.keepsErrorBody = result.failsWithBody
                plan.headSink = heads
                plan.maximumSize = place.maximumSize?.bytes
                if let continuation { plan.meter?.begin(at: continuation.start) }
                plan.bodyStream = { content.stream(rate: options.pace.rate) }
                plan.objection = { response in
                    if let continuation { return continuation.objection(to: response) }
                    // An unwanted response is not a failure, and the file stays unchanged.
                    if !isWanted(response, condition) { return ToolFailure(0, nil) }
                    return name.withLock { takeServerName(of: response, sink, own: &$0) }
                }
                return (TransferObserver(plan, prepared.answers, to: sink), content.task(in: session, with: request))
            } finish: { outcome, path in
                try place.date(path, by: outcome.response)
                try tags.save(outcome.response)
                if let path, result.takesServerName { options.say("saved as \(path)") }
            }
        } catch let failure as ToolFailure where failure.code != 0 && result.removesOnError {
            if let path = written.withLock({ $0?.openedPath }),
                (try? FileManager.default.attributesOfItem(atPath: path))?[.type] as? FileAttributeType == .typeRegular
            {
                unlink(path)
            }
            throw failure
        }
    }

    private func isWanted(_ response: URLResponse, _ condition: TimeCondition?) -> Bool {
        guard let response = response as? HTTPURLResponse else { return true }
        if tags.compared != nil, response.statusCode == 304 { return false }
        return condition?.isMet(by: response) != false
    }

    /// Applies `--continue-at` to the request.
    private func continuation(
        of request: inout URLRequest, _ prepared: PreparedLoad, file: String?, isUpload: Bool
    ) throws(ToolFailure) -> ResumePosition? {
        guard let argument = result.continueAt else { return nil }
        if isUpload {
            guard argument == "-", FTPAddress.space(prepared.url) != nil else {
                throw ToolFailure(2, "uploads support only '-C -', and only for ftp and ftps URLs")
            }
            prepared.configuration.resumesFTPUploads = true
            return nil
        }
        guard let continuation = try ResumePosition(argument, file: file) else { return nil }
        guard ServerOrigin(prepared.url) != nil else { throw ToolFailure(2, "--continue-at supports only http and https URLs") }
        request.setValue("bytes=\(continuation.start)-", forHTTPHeaderField: "Range")
        request.cachePolicy = .reloadIgnoringLocalCacheData
        prepared.configuration.omittedHeaders.insert("accept-encoding")
        return continuation
    }

    /// Applies the file name that the server suggests, if `--remote-header-name` is given.
    ///
    /// - Parameters:
    ///   - response: The response.
    ///   - sink: The body's destination.
    ///   - own: The file that an earlier attempt created, which may be replaced.
    /// - Returns: The reason why the file cannot be created; nil if it can.
    private func takeServerName(of response: URLResponse, _ sink: BodySink, own: inout String?) -> ToolFailure? {
        guard result.takesServerName, sink.path != nil, (response as? HTTPURLResponse)?.statusCode ?? 200 < 400,
            let name = DownloadFiles.suggestion(response)
        else { return nil }
        do throws(ToolFailure) {
            let path = (place.prefix ?? place.folder).map { "\($0)/\(name)" } ?? name
            try sink.take(path, replaces: own == path)
            own = path
            return nil
        } catch {
            return error
        }
    }

    /// Adds the header fields for `--range`, `--etag-compare` and `--time-cond`.
    private func addConditions(to request: inout URLRequest, _ prepared: PreparedLoad) throws -> TimeCondition? {
        let isHTTP = ServerOrigin(prepared.url) != nil
        if let range = result.range {
            guard isHTTP else { throw ToolFailure(2, "--range supports only http and https URLs") }
            request.setValue("bytes=" + range, forHTTPHeaderField: "Range")
            // Ranges apply to the file without content coding.
            if !compressed { prepared.configuration.omittedHeaders.insert("accept-encoding") }
        }
        if let tag = tags.condition {
            guard isHTTP else { throw ToolFailure(2, "--etag-compare supports only http and https URLs") }
            request.setValue(tag, forHTTPHeaderField: "If-None-Match")
        }
        guard let text = result.timeCondition else { return nil }
        guard isHTTP else { throw ToolFailure(2, "--time-cond supports only http and https URLs") }
        guard let condition = TimeCondition(text) else {
            options.say("warning: '\(text)' is neither a date nor a file: loading without --time-cond")
            return nil
        }
        request.setValue(condition.field.value, forHTTPHeaderField: condition.field.name)
        return condition
    }
}
