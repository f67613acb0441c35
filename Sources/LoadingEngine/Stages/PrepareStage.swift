//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel

/// Turns a request into the message that goes on the wire: target, fields, body.
struct PrepareStage: LoadStage {
    /// From this many bytes on, a body waits for 100 (Continue). curl's limit is 1 MB; below it the wait costs more than the body.
    static let expectationThreshold: Int64 = 1_048_576

    func applies(to hop: Hop, in load: Load) -> Bool { true }

    func answer(_ hop: Hop, in load: Load, then next: ArraySlice<any LoadStage>) async throws(LoadError) -> Answer {
        if try !prepareAtOnce(hop, in: load) { try await open(hop, in: load) }
        let (stage, next) = try next.stage(for: hop, in: load)
        return try await stage.answer(hop, in: load, then: next)
    }

    /// Composes the message where that takes no waiting; answers false where the body has to be opened first.
    @inline(never)
    private func prepareAtOnce(_ hop: Hop, in load: Load) throws(LoadError) -> Bool {
        if Self.follows(.returnCacheDataDontLoad, hop, in: load) {
            throw LoadError(
                .resourceUnavailable, "the cache has no answer, and the request is not to be sent", url: hop.request.url)
        }
        switch hop.request.body {
        case .none: try prepare(hop, .none, in: load)
        case .data(let data): try prepare(hop, .data(data), in: load)
        case .file, .stream, .streamOnDemand: return false
        }
        return true
    }

    @inline(never)
    private func open(_ hop: Hop, in load: Load) async throws(LoadError) {
        try prepare(hop, try await UploadBody.open(hop.request.body, isRepeated: hop.isRepeated, in: load), in: load)
    }

    private func prepare(_ hop: Hop, _ body: OutgoingBody, in load: Load) throws(LoadError) {
        guard let url = hop.request.url else { throw LoadError(.badURL, "the request has no URL") }
        let target: RequestTarget
        do {
            target = try RequestTarget(url)
        } catch {
            throw Self.error(error, url)
        }
        let length = body.length
        var extra = hop.extraFields + load.rangeFields
        let expects =
            !hop.withoutExpectation
            && ((length ?? 0) >= Self.expectationThreshold || hop.request.headers.hasToken("100-continue", in: "Expect"))
        if Self.follows(.reloadIgnoringLocalAndRemoteCacheData, hop, in: load) {
            extra += ReloadFields.fields(besides: hop.request.headers)
        }
        if expects, !hop.request.headers.contains("Expect") { extra.append(("Expect", "100-continue")) }
        var fields = hop.request.headers
        if hop.withoutExpectation { fields.remove("Expect") }
        let headers = load.session.headers.compose(
            request: fields, target: target, method: hop.request.method, bodyLength: length, extra: extra
        )
        let isSecure = target.origin.isSecure
        if case .file(let source) = body { source.usesSendfile = !isSecure }
        hop.message = PreparedMessage(
            head: RequestHead(method: hop.request.method, target: target.path, headers: headers),
            body: body,
            route: Route(isSecure: isSecure, host: target.origin.host, port: target.origin.port),
            expectsContinue: expects && length != nil
        )
    }

    /// Whether the request or its session has a policy, each of those asked about being stricter than the others.
    private static func follows(_ policy: LoadRequest.CachePolicy, _ hop: Hop, in load: Load) -> Bool {
        hop.request.cachePolicy == policy || load.session.policy.cachePolicy == policy
    }

    private static func error(_ error: RequestTarget.Malformed, _ url: URL) -> LoadError {
        switch error {
        case .unsupportedScheme: LoadError(.unsupportedURL, "the scheme of \(url.absoluteString) is not supported", url: url)
        default: LoadError(.badURL, "\(url.absoluteString) is not a URL that can be loaded: \(error)", url: url)
        }
    }
}
