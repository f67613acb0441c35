// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore

/// The state of a load's resumable upload.
///
/// Executes the decisions of ``ResumableUpload``.
///
/// The app's request creates the upload. The requests that retrieve the upload's offset and send the rest are hops of the load,
/// like those after a redirect. The app sees these requests only in the metrics.
final class UploadResumption: LoadKind {
    /// The maximum size in bytes of a response that is kept while the server is asked for the offset.
    static let bufferedBodyLimit = 262_144

    private let order: UploadOrder
    private var hasBegun = false
    var upload: ResumableUpload?
    /// The body's stream, and the part of it that is being sent.
    var stream = UploadStream()
    /// The version of the body's file when it was first sent.
    private var file: FileVersion?
    /// The request that created the upload.
    private(set) var creation: Hop?
    /// Whether to add the upload fields.
    ///
    /// False if the app sets its own upload fields, because it then implements the protocol itself.
    private let announces: Bool
    /// The exchange that carries the most recent part, and the offset of that part.
    private var partInFlight: (exchange: Exchange, offset: Int64)?
    /// The response to deliver if the server has the whole upload.
    var bufferedResponse: Answer?
    /// What interrupted the upload.
    private var interruption: LoadError?
    /// Whether the server contradicted itself or refused the upload, which is then canceled at the server.
    private var isRefused = false
    /// The step that an interim response requires.
    private var interimStep: ResumableUpload.Step?

    init(_ order: UploadOrder, of request: LoadRequest) {
        self.order = order
        announces = !request.headers.fields.contains { $0.name.lowercased().hasPrefix("upload-") }
    }

    /// False once the server has said that the upload can be resumed: the upload itself then decides what follows a failure.
    override var allowsAppRetries: Bool { upload?.resource == nil }

    /// Whether the upload has to process a response.
    ///
    /// A final response without upload fields ends the upload.
    override func mayFollowUp(_ answer: Answer) -> Bool {
        guard let upload, !upload.isOver else { return false }
        guard upload.isCreating, let part = upload.part, part.isLast, let head = answer.response.head, 200...299 ~= head.status,
            !head.headers.contains("Upload-Complete"), !head.headers.contains("Upload-Incomplete")
        else { return true }
        self.upload?.end()
        return false
    }

    // MARK: Hops

    override var fileVersion: FileVersion? { file }

    override func content(of stream: any BodyStream) -> any BodyStream { self.stream.all(of: stream) }

    /// Returns a body that sends a part of a stream.
    ///
    /// If the rest of the earlier stream is not available, the delegate is asked for a new stream.
    override func open(_ part: ResumableUpload.Part, in load: Load) async throws(LoadError) -> OutgoingBody {
        let start = part.offset
        let length = UploadBody.declaredLength(load.order.request.headers) ?? upload?.length
        if length == start { return .data(Data()) }
        let rest: any BodyStream
        if let known = stream.rest(from: start) {
            rest = known
        } else {
            rest = try await UploadBody.stream(from: start, in: load)
        }
        guard let count = part.count else { return .stream(rest, length: length.map { $0 - start }) }
        let content = stream.part(of: rest, from: start, count: count)
        if let length { return .stream(content, length: min(count, length - start)) }
        let ahead: Data?
        do throws(LoadError) {
            ahead = try await content.readAhead(UploadStream.ahead(upload?.limits), in: load.control)
        } catch {
            rest.close()
            throw error
        }
        guard let all = ahead else { return .stream(content, length: nil) }
        // The stream ended: this is the last part, and its length is known.
        stream.close()
        rest.close()
        upload?.markPartAsLast(count: Int64(all.count))
        return .data(all)
    }

    /// Returns the first hop of a load that resumes an earlier upload; nil for other loads.
    override func firstHop(of load: Load) -> Hop? {
        hasBegun = true
        guard let data = order.resuming else { return nil }
        var request = load.order.request
        do {
            let earlier = try UploadResumeData(decoding: data)
            // If a redirect of the earlier load led away from the app's origin, the fields that it removed stay removed, even if
            // another redirect led back.
            if earlier.leftOrigin {
                for name in request.headers.fields.map(\.name) where RedirectPolicy.isBoundToOrigin(name) {
                    request.headers.remove(name)
                }
            }
            let first = Hop(number: 0, request: request)
            first.followUp = FollowUpState(leftOrigin: earlier.leftOrigin)
            if case .file(_, let size, let changed, let inode) = earlier.body {
                file = FileVersion(size: size, changed: changed, inode: inode)
            }
            upload = ResumableUpload(continuing: earlier.point)
            creation = first
            return control(part: nil, number: 0, proxies: load.proxies != nil) ?? first
        } catch {
            let hop = Hop(number: 0, request: request)
            hop.keep(.failure(LoadError(.cannotOpenFile, "the resume data cannot be used; start the upload again", cause: error)))
            return hop
        }
    }

    /// Returns a hop to the upload resource, which retrieves the offset or sends a part.
    func control(part: ResumableUpload.Part?, number: Int, proxies: Bool) -> Hop? {
        guard let creation, let method = upload?.method,
            let (request, leavesOrigin) = request(method, hasBody: part != nil, proxies: proxies)
        else { return nil }
        let hop = Hop(number: number, request: request)
        hop.authentication = creation.authentication.afterRedirect
        hop.followUp = FollowUpState(leftOrigin: creation.followUp.leftOrigin || leavesOrigin)
        hop.errand = HopErrand(part: part, leavesRequest: true)
        return hop
    }

    /// Returns a request to the upload resource, and whether the resource's origin differs from that of the creating request.
    private func request(_ method: String, hasBody: Bool, proxies: Bool) -> (LoadRequest, leavesOrigin: Bool)? {
        guard let creation, let url = creation.request.url, let resource = method == "OPTIONS" ? url : upload?.resource else {
            return nil
        }
        let crosses = Origin(resource) != Origin(url)
        let proposal = RedirectPolicy.Proposal(
            url: resource, method: method, keepsBody: hasBody, dropsContentFields: true, crossesOrigin: crosses)
        var request = creation.request
        request.url = resource
        request.method = method
        request.headers = RedirectPolicy.strippedHeaders(request.headers, proposal: proposal, mayHaveProxy: proxies)
        // Conditions and ranges apply only to the app's request.
        for name in ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Range"] {
            request.headers.remove(name)
        }
        if !hasBody { request.body = .none }
        request.cachePolicy = .reloadIgnoringLocalCacheData
        return (request, crosses)
    }

    override func addFields(to fields: inout [(String, String)], for hop: Hop, _ body: OutgoingBody, by route: Route) {
        if !hop.leavesRequest {
            guard announces, let length = body.length, length != 0 || hop.errand?.part != nil else { return }
            // If the hop sends a part, the length of the whole body may already be known.
            let whole = hop.errand?.part == nil ? (length < 0 ? nil : length) : upload?.length
            if upload == nil { upload = ResumableUpload(length: whole) }
            guard upload?.isCreating == true else { return }
            if case .file(let body) = body { file = body.found }
            upload?.beginCreation(length: whole)
            creation = hop
        }
        fields += upload?.fields ?? []
    }

    override func willSend(_ hop: Hop, as transaction: Transaction) {
        guard let upload else { return }
        if !hop.leavesRequest { discardKept() }
        transaction.sentOffset = hop.errand?.part?.offset ?? (hop.leavesRequest ? upload.acknowledged : 0)
        transaction.sentBodyLength = upload.length ?? -1
        if !hop.leavesRequest || hop.errand?.part != nil, let exchange = transaction.exchange {
            partInFlight = (exchange, hop.errand?.part?.offset ?? 0)
            if upload.resource != nil, hop.leavesRequest { exchange.willBeContinued() }
        }
    }

    override func handleInterim(
        _ head: ResponseHead, from url: URL, _ hop: Hop, _ exchange: Exchange, in load: Load
    ) throws(LoadError) {
        guard head.status == 104, upload?.isOver == false else { return }
        let knewPlace = upload?.resource != nil
        interimStep = upload?.handleInterim(head, from: url, given: exchange.record.submittedBodyBytes, now: load.now)
        if !knewPlace, upload?.resource != nil {
            exchange.willBeContinued()
            reportResumable(load)
        }
        if upload?.isCreating == true { stream.limit = upload?.maximumPartSize }
        if interimStep != nil { throw LoadError(.connectionLost, "the server requires another request for the upload") }
    }

    /// Reports that other loads can now resume the upload.
    ///
    /// The load may end without a later report.
    private func reportResumable(_ load: Load) {
        if load.wants(.resumePoints) { load.tell(.resumable(resumeData(load))) }
    }

    override func follow(_ error: LoadError, _ hop: Hop, _ pool: ConnectionPool, in load: Load) async throws(LoadError) -> Hop? {
        guard load.control.failure == nil, upload != nil else { return nil }
        if error.kind == .requestBodyStreamExhausted, upload?.isCreating == true, let bufferedResponse = bufferedResponse.take() {
            upload?.end()
            hop.keep(.answer(bufferedResponse))
            return hop
        }
        let step: ResumableUpload.Step
        if let interim = interimStep.take() {
            step = interim
        } else if stream.hasExceeded, let next = upload?.contentExceededLimit(given: Self.given(load)) {
            step = next
        } else {
            guard upload?.isOver == false, Self.isInterruption(error), !error.isProxyError,
                !load.lastAttempt.evidence.isUnprocessed,
                let next = upload?.lost(given: Self.given(load), now: load.now)
            else { return nil }
            if interruption == nil { interruption = error }
            step = next
        }
        switch try await carryOut(step, nil, hop, pool, in: load) {
        case .hop(let hop): return hop
        case .answer(let answer):
            hop.keep(.answer(answer))
            return hop
        }
    }

    override func follow(_ answer: Answer, _ hop: Hop, _ pool: ConnectionPool, in load: Load) async throws(LoadError) -> Verdict {
        guard let upload, !upload.isOver, let head = answer.response.head, let url = hop.request.url else {
            return .answer(answer)
        }
        var answer = answer
        var problem: String?
        if upload.method == "PATCH", 400...499 ~= head.status, UploadProblem.isStated(by: head) {
            let content = try await keep(answer)
            answer = content.answer
            problem = UploadProblem.type(head, content.bytes)
        }
        noteEndOfStream()
        // An abandoned request may have sent more bytes since.
        if let partInFlight { self.upload?.didSend(upTo: partInFlight.offset + partInFlight.exchange.record.submittedBodyBytes) }
        let step = self.upload?.answered(head, from: url, given: Self.given(load), problem: problem, now: load.now) ?? .deliver
        if upload.resource == nil, self.upload?.resource != nil { reportResumable(load) }
        return try await carryOut(step, answer, hop, pool, in: load)
    }

    /// Whether to follow a redirect of a request to the upload resource.
    ///
    /// A redirect from TLS to clear text is never followed, because a connection in clear text does not prove which server it
    /// reaches.
    override func mayRedirect(_ hop: Hop, to proposal: RedirectPolicy.Proposal) -> Bool {
        guard let url = hop.request.url, proposal.method == hop.request.method,
            hop.errand?.redirectCount ?? 0 < RedirectPolicy.limit,
            let origin = Origin(proposal.url)
        else { return false }
        return origin.isSecure || Origin(url)?.isSecure == false
    }

    private static func isInterruption(_ error: LoadError) -> Bool {
        switch error.kind {
        case .connectionLost, .cannotConnectToHost, .cannotFindHost, .dnsLookupFailed, .notConnectedToInternet: true
        default: false
        }
    }

    private static func given(_ load: Load) -> Int64 { load.transaction?.exchange?.record.submittedBodyBytes ?? 0 }

    // MARK: Ends

    func failure(_ reason: ResumableUpload.Failure?) -> LoadError {
        if reason?.isRefusal == true { isRefused = true }
        switch reason {
        case .contradiction(let message):
            return LoadError(.badServerResponse, "\(message); the upload is not continued")
        case .tooLarge(let limit):
            return LoadError(.dataLengthExceedsMaximum, "the server accepts uploads of at most \(limit) bytes (Upload-Limit)")
        case .tooSmall(let limit):
            return LoadError(.dataLengthExceedsMaximum, "the server accepts uploads of at least \(limit) bytes (Upload-Limit)")
        case .gone(let status):
            guard var error = interruption else {
                return LoadError(
                    .resourceUnavailable, "the server no longer has the upload (\(status)); start the upload again")
            }
            error.message += "; the server did not keep the upload (\(status))"
            return error
        case .unanswered(let status):
            return interruption
                ?? LoadError(.resourceUnavailable, "the server did not report the upload's offset (\(status)); try again later")
        case .unauthorized(let status):
            let peer = status == 407 ? "the proxy" : "the server"
            return LoadError(
                .userAuthenticationRequired,
                "\(peer) demands a login before the upload continues (\(status)); provide one, and resume the upload")
        case nil: return interruption ?? LoadError(.connectionLost, "the upload was interrupted")
        }
    }

    /// Ends the upload when the load fails: adds the resume data to the error, or cancels the upload at the server.
    override func willFail(with error: inout LoadError, in load: Load) {
        discardKept()
        stream.close()
        processRemainingInterimResponses(in: load)
        guard upload?.resource != nil else {
            // A load that never began leaves the earlier upload unchanged.
            if !hasBegun, error.kind != .cancelled || load.wantsResumeData { error.uploadResumeData = order.resuming }
            return
        }
        let isGivenUp = error.kind == .cancelled && !load.wantsResumeData
        if !isGivenUp, let data = resumeData(load) {
            error.uploadResumeData = data
            return
        }
        guard isRefused || isGivenUp && upload?.isOver == false else { return }
        if let (cancellation, leavesOrigin) = request("DELETE", hasBody: false, proxies: load.proxies != nil) {
            var request = cancellation
            for (name, value) in upload?.version.controlFields ?? [] { request.headers.set(name, value) }
            UploadCancellation.start(request, leftOrigin: leavesOrigin || creation?.followUp.leftOrigin == true, in: load)
        }
        upload?.end()
    }

    /// Processes the interim responses that arrived before the load ended.
    private func processRemainingInterimResponses(in load: Load) {
        guard upload?.isCreating == true, let exchange = partInFlight?.exchange, let url = creation?.request.url else { return }
        while let event = exchange.takeEvent() {
            switch event {
            case .informational(let head):
                _ = upload?.handleInterim(head, from: url, given: exchange.record.submittedBodyBytes, now: load.now)
            case .sent: break
            case .head: return
            }
        }
    }

    private func resumeData(_ load: Load) -> Data? {
        guard let creation, let point = upload?.point(now: load.now) else { return nil }
        let request = creation.request
        let body: UploadResumeData.Body
        switch load.order.request.body {
        case .none: return nil
        case .data(let data): body = .data(data)
        case .file(let path):
            // Content that was made when it was read cannot be read again.
            guard case .file = request.body, let file = file ?? load.order.bodyFile else { return nil }
            body = .file(path: path, size: file.size, changed: file.changed, inode: file.inode)
        case .stream, .streamOnDemand: body = .stream
        }
        guard let url = load.order.request.url else { return nil }
        var data = UploadResumeData(
            url: url, method: request.method, headers: load.order.request.headers, body: body, point: point)
        data.leftOrigin = creation.followUp.leftOrigin
        data.settings.handlesCookies = request.handlesCookies
        data.settings.timeout = request.timeout
        data.settings.mainDocumentURL = load.order.request.mainDocumentURL
        data.settings.cookiePartition = request.cookiePartition
        return data.encoded()
    }
}
