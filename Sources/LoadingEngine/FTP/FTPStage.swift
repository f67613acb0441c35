// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore
import TransportMachines

/// Loads `ftp:` and `ftps:` URLs (RFC 959).
///
/// The response is a file, a directory listing, or, for an upload or `HEAD`, empty. A request with a body is an upload, whatever its
/// method.
final class FTPStage: LoadStage {
    /// The media type of a listing in the server's own format; no type is registered for that.
    static let listingType = "text/ftp-dir-listing"
    private let pool: ConnectionPool
    private let holder = ConnectionHolder()

    init(pool: ConnectionPool) { self.pool = pool }

    func step(_ hop: Hop, in load: Load) -> StageStep {
        hop.hasScheme("ftp", or: "ftps") && !load.switchesProtocols ? .needsTask : .proceed
    }

    func answer(_ hop: Hop, in load: Load, then next: LowerStages) async throws(LoadError) -> Answer {
        guard let url = hop.request.url else { throw LoadError(.unsupportedURL, "the request has no URL") }
        guard hop.number == 0 else {
            throw LoadError(.unsupportedURL, "a redirect must not lead to \(PrintableURL.text(url))", url: url)
        }
        let request = hop.request
        let policy = request.cachePolicy == .useProtocolCachePolicy ? load.session.policy.cachePolicy : request.cachePolicy
        guard policy != .returnCacheDataDontLoad else {
            throw LoadError(
                .resourceUnavailable, "FTP responses are not cached, and the cache policy forbids a request", url: url)
        }
        let target = try Self.target(url)
        var plan = try Self.plan(target, request, url, in: load)
        try Self.checkSecurity(of: plan, target, in: load)
        let body = try await UploadBody.open(request.body, of: hop, in: load)
        if let length = body.length, length >= 0 { plan.length = length }
        let transaction = Transaction(request: request, now: .now())
        transaction.sentBodyLength = body.length ?? 0
        load.begin(transaction)
        let conversation = FTPConversation(plan, with: target, by: pool, holder, in: load)
        do throws(LoadError) {
            let beginning = try await conversation.begin()
            if plan.transfer.isStore { try await conversation.store(body, from: beginning.offset) }
            let file = FTPFile(
                mimeType: Self.mimeType(target, plan), size: beginning.size, modified: beginning.modified,
                offset: beginning.offset)
            let response = LoadResponse(
                url: url, kind: .ftp(file), expectedLength: Self.expectedLength(of: file, plan))
            transaction.response = response
            return Answer(response: response, body: FTPBody(conversation, transaction, in: load), transaction: transaction)
        } catch {
            conversation.close()
            if case .stream(let stream, _) = body { stream.close() }
            throw error
        }
    }

    private static func target(_ url: URL) throws(LoadError) -> FTPTarget {
        do {
            return try FTPTarget(url)
        } catch {
            throw LoadError(.badURL, "\(PrintableURL.text(url)) is not a URL that can be loaded: \(error.message)", url: url)
        }
    }

    private static func plan(
        _ target: FTPTarget, _ request: LoadRequest, _ url: URL, in load: Load
    ) throws(LoadError) -> FTPPlan {
        let policy = load.session.policy
        let transfer: FTPPlan.Transfer
        switch request.body {
        case .none where request.method == "HEAD": transfer = .describe
        case .none where target.listsNames: transfer = .listNames
        case .none: transfer = target.name == nil ? .list : .retrieve
        case .data, .file, .stream, .streamOnDemand:
            guard target.name != nil else { throw LoadError(.badURL, "an upload's URL must name a file", url: url) }
            transfer = .store(resumes: policy.resumesFTPUploads)
        }
        var plan = FTPPlan(
            security: target.origin.isSecure ? .implicit : policy.requiresSecureFTP ? .explicit : .none,
            directories: target.directories, name: target.name, transfer: transfer, isText: target.isText)
        if transfer == .retrieve, let point = load.kind?.resumePoint, FTPTarget.isFTP(point.url),
            let size = point.totalByteCount, let modified = point.lastModified
        {
            plan.earlier = FTPPlan.Version(size: size, modified: modified)
            plan.offset = point.receivedByteCount
        }
        return plan
    }

    /// App Transport Security applies to `ftp` as it does to `http`: both send passwords and files in clear text.
    private static func checkSecurity(of plan: FTPPlan, _ target: FTPTarget, in load: Load) throws(LoadError) {
        let isSecure = plan.security != .none
        if case .refused(let reason) = load.session.security.verdict(isSecure: isSecure, host: target.origin.host) {
            throw LoadError(.appTransportSecurityRequiresSecureConnection, reason)
        }
    }

    private static func mimeType(_ target: FTPTarget, _ plan: FTPPlan) -> String? {
        if plan.transfer.isStore { return nil }
        if target.listsNames { return "text/plain" }
        guard let name = target.name else { return listingType }
        let text = String(decoding: name, as: UTF8.self)
        return text.lastIndex(of: ".").flatMap { MediaType.mimeType(forPathExtension: String(text[$0...].dropFirst())) }
    }

    private static func expectedLength(of file: FTPFile, _ plan: FTPPlan) -> Int64 {
        if plan.transfer.isStore { return 0 }
        // The server may convert the line endings of text, so the length is unknown.
        guard !plan.isText, let size = file.size else { return -1 }
        return size - file.offset
    }
}

/// The body of an FTP response.
final class FTPBody: ResponseBody {
    private let conversation: FTPConversation
    private let transaction: Transaction
    private let load: Load

    init(_ conversation: FTPConversation, _ transaction: Transaction, in load: Load) {
        self.conversation = conversation
        self.transaction = transaction
        self.load = load
    }

    func next() async throws(LoadError) -> ByteBuffer? {
        guard let piece = try await conversation.next() else {
            end()
            return nil
        }
        transaction.bodyBytes += Int64(piece.readableBytes)
        transaction.bodyBytesAfterDecoding = transaction.bodyBytes
        return piece
    }

    func cancel() { end() }

    private func end() {
        transaction.end = transaction.end ?? .now()
        conversation.close()
    }
}
