// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import SystemThreads

/// A download: the body goes into a file, which may continue the file of an earlier load.
final class DownloadLoad: LoadKind {
    private let resumeData: Data?
    private var resumption: DownloadResumption?

    init(resuming resumeData: Data?) { self.resumeData = resumeData }

    override var runsItself: Bool { true }
    override var usesCache: Bool { false }
    override var resumePoint: ResumePoint? { resumption.flatMap { $0.asksForRest ? $0.point : nil } }

    override func addFields(to fields: inout [(String, String)], for hop: Hop, _ body: OutgoingBody, by route: Route) {
        if let resumption { fields.insert(contentsOf: resumption.rangeFields, at: 0) }
    }

    override func run(by stages: any HopStages, in load: Load) async throws(LoadError) -> TaskOutcome.Body {
        guard let resumeData else {
            return try await DownloadDelivery.deliver(
                try await stages.answer(load.firstHop(), in: load), continuing: nil, of: load)
        }
        let resumption = try DownloadResumption(
            resuming: resumeData, of: load.order.request.url, in: load.session.policy.temporaryDirectory)
        self.resumption = resumption
        return try await resumption.deliver(by: stages, in: load)
    }
}

/// Resumes a download where an earlier load stopped, or starts over if it cannot be resumed.
final class DownloadResumption {
    /// The earlier load's partial file, to which the response is appended.
    struct Start {
        let sink: FileSink
        let offset: Int64
        let total: Int64?
        /// The source of the bytes in the partial file.
        let source: ResumePoint.Source
    }

    /// Where the response's body is written.
    private enum Destination {
        /// Appended to the existing file.
        case appending(Start)
        /// Into a new file; the old one is deleted.
        case replacing
        /// Into a new file, while the old one is kept for the next attempt, or until the new one has this length.
        case keepingEarlier(FileSink, until: Int64? = nil)
        /// Nowhere: the existing file is already complete, and is delivered with the earlier response.
        case existingFile(ResumePoint.Response, FileSink)
    }

    let point: ResumePoint
    private let data: Data
    private let path: String
    /// `Range` and `If-Range`.
    ///
    /// Added to every hop, because a redirect is expected to lead to the same file.
    var rangeFields: [(String, String)] { asksForRest ? ResumeDecision.requestFields(for: point) : [] }
    /// Whether the server should send only the rest.
    private(set) var asksForRest = false

    init(resuming data: Data, of url: URL?, in directory: String) throws(LoadError) {
        do {
            point = try ResumePoint(decoding: data)
        } catch {
            throw LoadError(
                .cannotOpenFile, "the resume data cannot be used; start the download from its URL", cause: error
            )
        }
        guard let url, Self.isOfSameResource(url, point.originalURL) else {
            throw LoadError(
                .cannotOpenFile, "the resume data is for another URL; start the download from its URL", url: url
            )
        }
        self.data = data
        path = directory + "/" + point.temporaryFileName
    }

    /// Whether two URLs may name the same file.
    ///
    /// Their queries may differ, as those of signed links do.
    private static func isOfSameResource(_ url: URL, _ other: URL) -> Bool {
        guard let target = try? RequestTarget(url), let earlier = try? RequestTarget(other) else { return url == other }
        return target.origin == earlier.origin && target.path.prefix { $0 != "?" } == earlier.path.prefix { $0 != "?" }
    }

    /// Resumes the download, or starts over.
    func deliver(by stages: any HopStages, in load: Load) async throws(LoadError) -> TaskOutcome.Body {
        let (answer, place) = try await answer(stages, in: load)
        switch place {
        case .appending(let start):
            return try await DownloadDelivery.deliver(answer, continuing: start, asksForRest: !rangeFields.isEmpty, of: load)
        case .replacing:
            return try await DownloadDelivery.deliver(answer, continuing: nil, asksForRest: !rangeFields.isEmpty, of: load)
        case .keepingEarlier(let sink, let length):
            do {
                let file = try await DownloadDelivery.deliver(
                    answer, continuing: nil, keepingEarlier: data, length: length, asksForRest: !rangeFields.isEmpty, of: load)
                if length != nil { _ = await sink.waitAtEnd(in: load.control, for: sink.abort) }
                return file
            } catch {
                var error = error
                error.resumeData = data
                throw error
            }
        case .existingFile(let response, let sink):
            return try await finish(sink, response, in: load)
        }
    }

    /// Finishes a download that was already complete.
    ///
    /// The task receives the earlier response; the new one appears only in the task's metrics.
    private func finish(
        _ sink: FileSink, _ earlier: ResumePoint.Response, in load: Load
    ) async throws(LoadError) -> TaskOutcome.Body {
        let response = LoadResponse(url: point.url, kind: .http(earlier.head), expectedLength: earlier.expectedLength)
        load.take(response)
        load.tell(.response(response))
        load.resumed(at: point.receivedByteCount, expected: point.receivedByteCount)
        if load.wants(.resumePoints) || load.wants(.createdFiles) { load.tell(.resumable(data)) }
        do {
            _ = try await sink.wait(in: load.control, for: sink.close)
            return .file(path: sink.path)
        } catch {
            var error = error
            if !sink.hasFailed { error.resumeData = data }
            throw error
        }
    }

    /// Requests the remaining bytes, and then the whole file if the response does not fit the existing part.
    private func answer(_ stages: any HopStages, in load: Load) async throws(LoadError) -> (Answer, Destination) {
        let sink: FileSink
        do {
            // The file stays open while the load waits for a connection.
            let room = try await load.control.reserveFile(.half)
            sink = try await LocalFile.open(path, in: load.control, isOnHold: true) { [point] path throws(LoadError) in
                try FileSink.reopenNow(
                    path: path, length: point.receivedByteCount, expectedLength: point.totalByteCount, room: room)
            }
        } catch {
            // The load ended, perhaps while the file was still being opened; opening does not change the file.
            if var ended = load.control.failure {
                ended.resumeData = data
                throw ended
            }
            // The existing part may be useful once there is enough space for the rest.
            if error.isOutOfSpace {
                var error = error
                error.resumeData = data
                throw error
            }
            // The partial file is gone: start over.
            return (try await wholeAnswer(stages, in: load), .replacing)
        }
        // A part whose source is unknown cannot be continued by any response.
        asksForRest = point.source.voucher != nil
        do {
            let answer = try await wholeAnswer(stages, in: load)
            return try await judge(answer, continuing: sink, stages, in: load)
        } catch {
            // Nothing was written, so the next attempt can resume at the same offset.
            var error = error
            _ = await sink.waitAtEnd(in: load.control, for: sink.close)
            if !sink.hasFailed { error.resumeData = data }
            throw error
        }
    }

    private func wholeAnswer(_ stages: any HopStages, in load: Load) async throws(LoadError) -> Answer {
        try await stages.answer(load.firstHop(), in: load)
    }

    /// Decides what to do with a response; `isLast` is set if the request was repeated for the whole file.
    private func judge(
        _ answer: Answer, continuing sink: FileSink, _ stages: any HopStages, isLast: Bool = false, in load: Load
    ) async throws(LoadError) -> (Answer, Destination) {
        if case .ftp(let file) = answer.response.kind { return try await judge(file, answer, continuing: sink, stages, in: load) }
        guard let head = answer.response.head, isLast || !rangeFields.isEmpty else {
            _ = await sink.waitAtEnd(in: load.control, for: sink.abort)
            return (answer, .replacing)
        }
        let mayContinue = await DownloadSource.mayContinue(point, by: answer, in: load)
        switch ResumeDecision.decide(
            status: head.status, headers: head.headers, askedForRest: !isLast, mayContinue: mayContinue, resumingFrom: point)
        {
        case .append(let offset, let total):
            return (answer, .appending(Start(sink: sink, offset: offset, total: total, source: point.source)))
        case .alreadyComplete(let response):
            answer.body.cancel()
            return (answer, .existingFile(response, sink))
        case .startOver:
            _ = await sink.waitAtEnd(in: load.control, for: sink.abort)
            return (answer, .replacing)
        case .startOverIf(let length):
            _ = await sink.waitAtEnd(in: load.control, for: sink.close)
            return (answer, .keepingEarlier(sink, until: length))
        case .setAside:
            _ = await sink.waitAtEnd(in: load.control, for: sink.close)
            return (answer, .keepingEarlier(sink))
        case .restart where isLast:
            answer.body.cancel()
            throw LoadError(
                .badServerResponse, "the response is a part of the file, or has another length than the same version had before")
        case .restart: return try await restart(answer, sink, stages, in: load)
        }
    }

    /// Decides what to do with an FTP response, which starts at the requested offset or contains the whole file.
    private func judge(
        _ file: FTPFile, _ answer: Answer, continuing sink: FileSink, _ stages: any HopStages, in load: Load
    ) async throws(LoadError) -> (Answer, Destination) {
        guard file.offset > 0 else {
            _ = await sink.waitAtEnd(in: load.control, for: sink.abort)
            return (answer, .replacing)
        }
        guard file.offset == point.receivedByteCount, await DownloadSource.mayContinue(point, by: answer, in: load) else {
            return try await restart(answer, sink, stages, in: load)
        }
        return (answer, .appending(Start(sink: sink, offset: file.offset, total: file.size, source: point.source)))
    }

    /// Discards a response that does not continue the existing part, and requests the whole file.
    ///
    /// The existing part is kept until the whole file begins to arrive.
    private func restart(
        _ answer: Answer, _ sink: FileSink, _ stages: any HopStages, in load: Load
    ) async throws(LoadError) -> (Answer, Destination) {
        answer.body.cancel()
        asksForRest = false
        if load.followUp.restartFromFirstRequest() { load.tell(.requestChanged(load.order.request)) }
        return try await judge(try await wholeAnswer(stages, in: load), continuing: sink, stages, isLast: true, in: load)
    }
}
