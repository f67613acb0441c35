// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores
import NIOCore

/// A body that is stored while it is delivered.
///
/// An incomplete body is discarded.
final class CachingBody: ResponseBody {
    private let body: any ResponseBody
    private let load: Load
    private let keeper: ResponseKeeper
    private let request: LoadRequest
    private let sent: SentFields?
    private let response: LoadResponse
    private let stored: StoredResponse
    private let joint: PartJoint?
    private var window: PartWindow?
    private var writer: EntryWriter?
    /// The collected body, if the app needs the whole body: because the app has its own cache, or is asked whether to store the
    /// response.
    private var collected: Data?
    /// Whether the cache may have a response that this one replaces.
    private let mayReplace: Bool
    /// Whether the delegate is asked before the response is stored: as in Apple's system, only if its status is from 200 to 299.
    private let asksBeforeStoring: Bool
    private var isOver = false

    init(
        _ body: any ResponseBody, _ stored: StoredResponse, _ response: LoadResponse, expectedLength: Int64,
        joint: PartJoint? = nil,
        _ hop: Hop, _ keeper: ResponseKeeper, in load: Load
    ) {
        self.body = body
        self.load = load
        self.keeper = keeper
        self.stored = stored
        self.response = response
        self.joint = joint
        sent = load.transaction?.sent
        request = hop.request
        mayReplace = ResponseCaching.mayReplace(hop, in: load.session)
        asksBeforeStoring = load.wants(.willCache) && stored.isSuccess
        window = joint.map { PartWindow($0.window) }
        writer = keeper.store?.writer(for: stored, expectedLength: expectedLength)
        if isForApp ? expectedLength <= load.session.policy.cachedBodyLimit : asksBeforeStoring && writer != nil {
            collected = Data()
        }
        if let joint { append(joint.before) }
    }

    /// Whether the response goes to the app's own cache.
    private var isForApp: Bool { keeper.store == nil }

    func next() async throws(LoadError) -> ByteBuffer? {
        do {
            if let writer, writer.isBehind { try await catchUp(writer) }
            guard let piece = try await body.next() else {
                if !isOver { try await finish() }
                return nil
            }
            if window == nil { append(piece) } else if let part = window?.part(of: piece) { append(part) }
            return piece
        } catch {
            cancel()
            throw error
        }
    }

    func cancel() {
        isOver = true
        writer?.abandon()
        writer = nil
        collected = nil
        body.cancel()
    }

    private func append(_ piece: ByteBuffer) {
        piece.withUnsafeReadableBytes { append($0) }
    }

    private func append(_ data: Data) {
        data.withUnsafeBytes { append($0) }
    }

    private func append(_ bytes: UnsafeRawBufferPointer) {
        writer?.append(bytes)
        guard collected != nil else { return }
        collected?.append(contentsOf: bytes)
        // Stop collecting a body that is larger than the cache accepts.
        if let count = collected?.count,
            isForApp ? Int64(count) > load.session.policy.cachedBodyLimit : writer?.isOpen != true
        {
            collected = nil
        }
    }

    /// Waits for a disk that is slower than the network, so that memory use stays limited.
    ///
    /// Does not wait if the disk does not respond, or if other loads have already waited for the disk in vain.
    private func catchUp(_ writer: EntryWriter) async throws(LoadError) {
        guard !writer.isDiskStuck else { return writer.abandon() }
        let slot = LoopSlot<Bool>(load.control)
        writer.whenCaughtUp { slot.fill(true) }
        if try await slot.waitForDisk(in: load.control, timeout: load.requestTimeout) == nil { writer.giveUp() }
    }

    private func finish() async throws(LoadError) {
        isOver = true
        guard window?.isFilled != false else {
            writer?.abandon()
            (writer, collected) = (nil, nil)
            return
        }
        if let own = load.session.own, keeper.isSame(as: ResponseTrust.sharedKeeper(in: load)) { own.remove(key: stored.url) }
        if let joint { append(joint.after) }
        guard let data = collected else {
            if !isForApp { finishOrForget() }
            writer = nil
            return
        }
        collected = nil
        var proposed: CachedResponse? = CachedResponse(response: dated, data: data)
        if isForApp { proposed = proposed.map(obtained) }
        if asksBeforeStoring, let asked = proposed, case .cached(let answer) = try await load.ask(.willCache(asked)) {
            proposed = answer?.storagePolicy == .notAllowed ? nil : answer
        }
        defer { writer = nil }
        guard var proposed else {
            writer?.abandon()
            if !isForApp { forget() }
            return
        }
        if isForApp {
            // The app may have replaced the response that it was asked to store.
            proposed = obtained(proposed)
            var request = request
            request.sentFields = proposed.sentFields
            _ = try await load.ask(.storeCached(proposed, request))
        } else {
            store(proposed, insteadOf: data)
        }
    }

    /// Adds how the response was obtained: the request's fields and the connection's TLS properties.
    private func obtained(_ response: CachedResponse) -> CachedResponse {
        var response = response
        response.sentFields = sent?.plain
        response.security = stored.security
        return response
    }

    private func finishOrForget() {
        if let writer, writer.isOpen { writer.finish() } else { forget() }
    }

    /// Removes the stored response.
    ///
    /// A newer response has arrived, so the stored one is outdated, even if the newer one is too large to store or the app
    /// declines to store it. ``ResponseCaching`` handles newer responses that must not be stored in the same way.
    private func forget() {
        if stored.isComplete, mayReplace { keeper.store?.remove(key: stored.url) }
    }

    /// The response with a `Date`, because the app's cache has no other record of the response's time.
    ///
    /// "A recipient with a clock that receives a response message without a Date header field MUST record the time it was received
    /// and append a corresponding Date header field" (RFC 9110, section 6.6.1).
    private var dated: LoadResponse {
        guard case .http(var head) = response.kind, !head.headers.contains(.date) else { return response }
        head.headers.append("Date", HTTPDate.format(stored.responseTime + 978_307_200))
        return LoadResponse(url: response.url, kind: .http(head), expectedLength: response.expectedLength)
    }

    private func store(_ proposed: CachedResponse, insteadOf data: Data) {
        let memoryOnly = proposed.storagePolicy == .allowedInMemoryOnly
        var stored = stored
        if let head = proposed.response.head, head.headers != dated.head?.headers {
            // The app may have changed `Vary`, so the request fields that select the response are determined again. The seal's
            // key was available when storing began.
            stored.replaceHeaders(head.headers, requestHeaders: keeper.fields(of: sent) ?? HeaderBlock())
        }
        guard proposed.data != data || stored != self.stored, let cache = keeper.store else {
            writer?.amend(userInfo: proposed.userInfo, attachment: proposed.attachment, memoryOnly: memoryOnly)
            return finishOrForget()
        }
        // The app wants to store a response other than the one that was received.
        writer?.abandon()
        let other = cache.writer(
            for: stored, expectedLength: Int64(proposed.data.count), userInfo: proposed.userInfo, attachment: proposed.attachment,
            memoryOnly: memoryOnly
        )
        proposed.data.withUnsafeBytes { other?.append($0) }
        if let other, other.isOpen { other.finish() } else { forget() }
    }
}
