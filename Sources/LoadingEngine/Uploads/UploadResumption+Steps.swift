// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore

/// Carries out the steps of an upload.
extension UploadResumption {
    func carryOut(
        _ step: ResumableUpload.Step, _ answer: Answer?, _ hop: Hop, _ pool: ConnectionPool, in load: Load
    ) async throws(LoadError) -> Verdict {
        switch step {
        case .deliver:
            guard let answer else { throw failure(nil) }
            discardKept()
            stream.close()
            if hop.leavesRequest { try await makeOutdated(by: answer, in: load) }
            return .answer(hop.leavesRequest ? asResponseToRequest(answer) : answer)
        case .deliverKept:
            answer?.body.cancel()
            stream.close()
            guard let bufferedResponse = bufferedResponse.take() else { throw failure(nil) }
            return .answer(bufferedResponse)
        case .create(let part):
            if let answer { await keepOrDiscard(answer, hop, in: load) }
            let hop = hop.leavesRequest ? creation ?? hop : hop
            hop.abandonConnections(of: pool)  // A server that rejects the head might not read the content.
            hop.errand = part == ResumableUpload.Part() ? nil : HopErrand(part: part, leavesRequest: false)
            return .hop(hop)
        case .discover:
            if let answer { bufferedResponse = try await keep(answer).answer }
            return .hop(try next(part: nil, hop, load))
        case .retrieve(let seconds, let keepsResponse):
            if keepsResponse, bufferedResponse == nil, let answer {
                let content = try await keep(answer)
                bufferedResponse = hop.leavesRequest ? asResponseToRequest(content.answer) : content.answer
            } else if let answer {
                await answer.discard(in: load.control)
            }
            if !keepsResponse { discardKept() }
            try await load.pause(seconds)
            return .hop(try next(part: nil, hop, load))
        case .append(let part):
            discardKept()
            if let answer { await answer.discard(in: load.control) }
            return .hop(try next(part: part, hop, load))
        case .fail(let reason):
            answer?.body.cancel()
            discardKept()
            throw failure(reason)
        }
    }

    /// Removes the stored responses that the upload has made outdated.
    ///
    /// The response counts as the response to the app's request, because the upload has changed that request's resource.
    private func makeOutdated(by answer: Answer, in load: Load) async throws(LoadError) {
        guard let creation, let url = creation.request.url, let head = answer.response.head,
            let exchange = answer.transaction.exchange
        else { return }
        ResponseCaching.invalidate(by: head, of: exchange, creation, in: load)
        let keys = Revalidation.invalidated(method: creation.request.method, url: url, status: head.status, headers: head.headers)
        guard load.wants(.cache), !keys.isEmpty, ResponseTrust.mayChangeSharedStores(exchange, creation, in: load) else { return }
        do throws(LoadError) {
            _ = try await load.ask(.storeCached(nil, creation.request))
        } catch {
            answer.body.cancel()
            throw error
        }
    }

    /// Presents the response to the last part as the response to the app's request.
    func asResponseToRequest(_ answer: Answer) -> Answer {
        guard let url = creation?.request.url else { return answer }
        let response = LoadResponse(url: url, kind: answer.response.kind, expectedLength: answer.response.expectedLength)
        return Answer(response: response, body: answer.body, transaction: answer.transaction)
    }

    func next(part: ResumableUpload.Part?, _ hop: Hop, _ load: Load) throws(LoadError) -> Hop {
        guard let next = control(part: part, number: hop.number + 1, proxies: load.proxies != nil) else { throw failure(nil) }
        return next
    }

    /// Keeps a 413 that refused a stream, and discards any other response.
    ///
    /// The 413 becomes the result if no stream is available for another attempt.
    private func keepOrDiscard(_ answer: Answer, _ hop: Hop, in load: Load) async {
        guard answer.response.head?.status == 413, bufferedResponse == nil, !hop.request.body.isReplayable else {
            return await answer.discard(in: load.control)
        }
        let timer = answer.limitTime(in: load.control)
        defer { timer.cancel() }
        bufferedResponse = try? await keep(answer, acceptsPart: true).answer
    }

    func discardKept() {
        bufferedResponse?.body.cancel()
        bufferedResponse = nil
    }

    /// Reads a response's content into memory, to free the connection.
    ///
    /// Content beyond the limit is discarded. If `acceptsPart` is set and reading fails, the content received so far is returned.
    func keep(
        _ answer: Answer, acceptsPart: Bool = false
    ) async throws(LoadError) -> (answer: Answer, bytes: ByteBuffer) {
        var bytes = ByteBuffer()
        do {
            while bytes.readableBytes <= Self.bufferedBodyLimit, let piece = try await answer.body.next() {
                bytes.writeImmutableBuffer(piece)
            }
        } catch {
            answer.body.cancel()
            if !acceptsPart { throw error }
        }
        answer.body.cancel()
        return (Answer(response: answer.response, body: BufferedBody(bytes), transaction: answer.transaction), bytes)
    }

    /// Records the length of the upload if the stream ended in the part that was sent.
    func noteEndOfStream() {
        if let count = stream.endOfPart { upload?.partEnded(after: count) }
    }
}
