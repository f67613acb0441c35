// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore
import SystemThreads

/// Writes a body to a temporary file, and keeps the partial file if the download can be resumed.
enum DownloadDelivery {
    /// Delivers the response.
    ///
    /// - Parameters:
    ///   - answer: The response.
    ///   - start: The partial file that the response continues.
    ///   - earlier: The resume data of an earlier load whose file the response leaves untouched.
    ///   - length: The length that the file must have although the framing of the response does not ensure that.
    ///   - asksForRest: Whether the request asked for the rest of a file.
    ///   - load: The load.
    /// - Throws: An error with resume data, if the download can be resumed.
    /// - Returns: The file.
    @inline(never)
    static func deliver(
        _ answer: Answer, continuing start: DownloadResumption.Start?, keepingEarlier earlier: Data? = nil,
        length: Int64? = nil, asksForRest: Bool = false, of load: Load
    ) async throws(LoadError) -> TaskOutcome.Body {
        load.take(answer.response)
        load.tell(.response(answer.response))
        if let start { load.resumed(at: start.offset, expected: start.total ?? -1) }
        var download: Download
        var source = await DownloadSource.of(answer, in: load)
        if let start { source.join(start.source) }
        do {
            download = try await open(
                answer, continuing: start, source, asksForRest: asksForRest, in: load.session.policy.temporaryDirectory,
                load.control)
        } catch {
            answer.body.cancel()
            throw error
        }
        if load.wants(.resumePoints) { download.sink.keepWhenFull() }
        if load.wants(.resumePoints) || load.wants(.createdFiles) {
            load.tell(.resumable(earlier ?? currentResumeData(download, answer, of: load)))
        }
        do {
            try await write(answer, to: &download, of: load)
            try download.check(length ?? start?.total, of: answer, mayContinue: start != nil)
            _ = try await download.sink.wait(in: load.control, for: download.sink.close)
            return .file(path: download.sink.path)
        } catch {
            throw await abandon(download, answer, after: error, of: load)
        }
    }

    private struct Download {
        let sink: FileSink
        var total: Int64
        /// The size of the whole file, or -1 if it is unknown.
        let expected: Int64
        let source: ResumePoint.Source
        /// Whether the request asked for the rest of a file.
        let asksForRest: Bool
        /// Whether the received bytes are not those of the file that was announced.
        var isContradicted = false

        /// Compares the length of the received file with the length that was announced.
        ///
        /// A chunked body, for example, ends wherever its server ends it. FTP has its own check.
        mutating func check(_ owed: Int64?, of answer: Answer, mayContinue: Bool) throws(LoadError) {
            guard let owed, owed != total, answer.response.head != nil else { return }
            let reason = "the response ended at byte \(total) of the file, which has \(owed) bytes according to the server"
            if mayContinue, total < owed { throw LoadError(.connectionLost, reason) }
            isContradicted = true
            throw LoadError(.badServerResponse, reason)
        }
    }

    private static func open(
        _ answer: Answer, continuing start: DownloadResumption.Start?, _ source: ResumePoint.Source, asksForRest: Bool,
        in directory: String, _ control: LoadControl
    ) async throws(LoadError) -> Download {
        if let start {
            return Download(
                sink: start.sink, total: start.offset, expected: start.total ?? -1, source: source, asksForRest: asksForRest)
        }
        let expected = answer.response.expectedLength
        let room = try await control.reserveFile(.whole)
        let sink = try await LocalFile.open(directory, in: control, isOnHold: true) { directory throws(LoadError) in
            try FileSink.createNow(in: directory, expectedLength: expected < 0 ? nil : expected, room: room)
        }
        return Download(sink: sink, total: 0, expected: expected, source: source, asksForRest: asksForRest)
    }

    private static func write(_ answer: Answer, to download: inout Download, of load: Load) async throws(LoadError) {
        if let body = answer.body as? ExchangeBody {
            let isDone = try await body.splice(into: download.sink) { count in
                download.total += count
                load.received(count, total: download.total, expected: download.expected)
            }
            if isDone { return }
        }
        while let piece = try await answer.body.next() {
            let count = Int64(piece.readableBytes)
            try await download.sink.write(piece, in: load.control)
            download.total += count
            load.received(count, total: download.total, expected: download.expected)
        }
    }

    /// Keeps the file if the download can be resumed from it, and deletes it otherwise.
    private static func abandon(
        _ download: Download, _ answer: Answer, after error: LoadError, of load: Load
    ) async -> LoadError {
        var error = error
        answer.body.cancel()
        let sink = download.sink
        let isWanted = (error.kind != .cancelled || load.wantsResumeData) && load.session.headers.sessionValue("Range") == nil
        let isKept = load.wants(.resumePoints) && error.isOutOfSpace
        if isWanted, download.total > 0, !download.isContradicted,
            mayResume(answer, after: isKept ? nil : error, load.order.request, isContinuing: download.asksForRest, in: load),
            let kept = await sink.waitAtEnd(in: load.control, for: load.wants(.resumePoints) ? sink.keep : sink.close), kept > 0
        {
            error.resumeData = resumePoint(download, answer, kept, load.order.request, in: load)?.encodedIfPossible()
        }
        // A file that cannot be resumed is deleted.
        if error.resumeData == nil { _ = await sink.waitAtEnd(in: load.control, for: sink.abort) }
        return error
    }

    /// Returns the resume data that applies if no more bytes are received.
    private static func currentResumeData(_ download: Download, _ answer: Answer, of load: Load) -> Data? {
        let request = load.order.request
        guard load.session.headers.sessionValue("Range") == nil,
            mayResume(answer, after: nil, request, isContinuing: download.asksForRest, in: load)
        else { return nil }
        return resumePoint(download, answer, download.total, request, in: load)?.encodedIfPossible()
    }

    /// Returns a resume point that contains the app's own request, before any redirect.
    ///
    /// When the download resumes, that request's header fields are sent again, even if a redirect to another origin dropped them.
    private static func resumePoint(
        _ download: Download, _ answer: Answer, _ kept: Int64, _ request: LoadRequest, in load: Load
    ) -> ResumePoint? {
        var point = ResumePoint(
            url: answer.response.url, originalURL: request.url ?? answer.response.url, headers: request.headers,
            receivedByteCount: kept, totalByteCount: download.expected < 0 ? nil : download.expected,
            entityTag: nil, lastModified: nil, serverDate: nil,
            temporaryFileName: String(download.sink.path.split(separator: "/").last ?? "")
        )
        switch answer.response.kind {
        case .http(let head):
            point.entityTag = head.headers.octetText(.etag)
            point.lastModified = head.headers.first("Last-Modified")
            point.serverDate = ResumePoint.serverDate(of: head.headers, receivedAt: received(answer, in: load))
            point.response = ResumePoint.Response(head, expectedLength: answer.response.expectedLength)
        case .ftp(let file): point.lastModified = file.modified
        case .local, .application: return nil
        }
        point.source = download.source.bounded
        point.settings.handlesCookies = request.handlesCookies
        point.settings.timeout = request.timeout
        point.settings.mainDocumentURL = request.mainDocumentURL
        point.settings.cookiePartition = request.cookiePartition
        return point
    }

    /// Returns the time of the response, in seconds since 1970.
    private static func received(_ answer: Answer, in load: Load) -> Double {
        answer.transaction.times(in: load.session).response + Date.timeIntervalBetween1970AndReferenceDate
    }

    private static func mayResume(
        _ answer: Answer, after error: LoadError?, _ ordered: LoadRequest, isContinuing: Bool, in load: Load
    ) -> Bool {
        switch error?.kind {
        case .cannotWriteToFile, .cannotDecodeRawData, .cannotDecodeContentData: return false
        default: break
        }
        if case .ftp(let file) = answer.response.kind {
            // A file of unknown size may be text, whose line endings the server converts: the received bytes then differ from those
            // of the file.
            return file.size != nil && file.modified != nil && answer.response.expectedLength >= 0
        }
        guard let head = answer.response.head else { return false }
        // A redirect may have changed the method or the fields, and the next attempt starts with the app's own request.
        guard ordered.method == "GET", !ordered.headers.contains("Range") else { return false }
        let request = answer.transaction.request
        return ResumeDecision.mayResume(
            method: request.method, requestHeaders: request.headers, isContinuing: isContinuing, status: head.status,
            headers: head.headers, receivedAt: received(answer, in: load)
        )
    }
}
