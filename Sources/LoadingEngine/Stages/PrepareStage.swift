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

    func answer(_ hop: Hop, in load: Load, then next: ArraySlice<any LoadStage>) async throws(LoadError) -> Answer {
        var hop = hop
        hop.message = try await message(for: hop, in: load)
        return try await next.answer(hop, in: load)
    }

    private func message(for hop: Hop, in load: Load) async throws(LoadError) -> PreparedMessage {
        guard let url = hop.request.url else { throw LoadError(.badURL, "the request has no URL") }
        let target: RequestTarget
        do {
            target = try RequestTarget(url)
        } catch {
            throw Self.error(error, url)
        }
        let body = try await UploadBody.open(hop.request.body, isRepeated: hop.isRepeated, secure: target.origin.scheme == "https", in: load)
        let length = body.length
        var extra = hop.extraFields + load.rangeFields
        let expects =
            !hop.withoutExpectation
            && ((length ?? 0) >= Self.expectationThreshold || hop.request.headers.hasToken("100-continue", in: "Expect"))
        if expects, !hop.request.headers.contains("Expect") { extra.append(("Expect", "100-continue")) }
        var fields = hop.request.headers
        if hop.withoutExpectation { fields.remove("Expect") }
        let headers = load.session.headers.compose(
            request: fields, target: target, method: hop.request.method, bodyLength: length, extra: extra
        )
        return PreparedMessage(
            head: RequestHead(method: hop.request.method, target: target.path, headers: headers),
            body: body,
            route: Route(isSecure: target.origin.scheme == "https", host: target.origin.host, port: target.origin.port),
            expectsContinue: expects && length != nil
        )
    }

    private static func error(_ error: RequestTarget.Malformed, _ url: URL) -> LoadError {
        switch error {
        case .unsupportedScheme: LoadError(.unsupportedURL, "the scheme of \(url.absoluteString) is not supported", url: url)
        default: LoadError(.badURL, "\(url.absoluteString) is not a URL that can be loaded: \(error)", url: url)
        }
    }
}

extension Hop {
    /// Whether the body was sent before, so that a stream must be had anew.
    var isRepeated: Bool { number > 0 || failedAttempts > 0 || withoutExpectation || challengesAnswered > 0 }
}
