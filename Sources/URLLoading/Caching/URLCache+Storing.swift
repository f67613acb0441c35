//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Dispatch
import Foundation
import HTTPRules
import LoadingModel
import LoadingStores
import Synchronization

extension URLCache {
    /// Whether a cache is of this very class, so that a session may go to its ``store`` and ask nobody.
    static func isPlain(_ cache: URLCache) -> Bool { type(of: cache) == URLCache.self }

    // MARK: Places

    /// Where the caches are that a program names itself.
    static var programDirectory: String? { StoreLocations.cacheDirectory(program: ProcessInfo.processInfo.processName) }

    static var defaultDirectory: String? { programDirectory.map { $0 + "/responses" } }

    // MARK: Looking up

    /// Answered by whoever knows, waited for by one.
    private final class Answer: Sendable {
        let isThere = DispatchSemaphore(value: 0)
        let hit = Mutex<ResponseCache.Hit?>(nil)
    }

    /// The later of the entries for a request: what a session loaded, or what a class of the app answered.
    ///
    /// A session that asks about what it is about to load itself finds what a session loaded. Waits for the disk.
    func lookUp(_ request: URLRequest) -> CachedURLResponse? {
        guard request.storage.load.sentFields == nil else {
            return hit(find(request)).flatMap { CachedURLResponse($0, for: request) }
        }
        let (loaded, answered) = (hit(find(request)), hit(find(request, ofProtocol: true)))
        guard let loaded, let answered else { return (loaded ?? answered).flatMap { CachedURLResponse($0, for: request) } }
        let later = loaded.response.responseTime > answered.response.responseTime ? loaded : answered
        return CachedURLResponse(later, for: request)
    }

    /// What a class of the app answered before to such a request; waits for the disk.
    func lookUpAnswer(to request: URLRequest) -> CachedURLResponse? {
        hit(find(request, ofProtocol: true)).flatMap { CachedURLResponse($0, for: request) }
    }

    private func hit(_ found: ResponseCache.Lookup) -> ResponseCache.Hit? {
        switch found {
        case .hit(let hit): return hit
        case .miss, .unavailable: return nil
        case .wait(let ask):
            let answer = Answer()
            let pending = ask { hit in
                answer.hit.withLock { $0 = hit }
                answer.isThere.signal()
            }
            while answer.isThere.wait(timeout: .now() + DiskQueue.patience) == .timedOut {
                guard !pending.isMoving else { continue }
                // A disk that does not answer has nothing.
                pending.cancel()
                break
            }
            return answer.hit.withLock { $0 }
        }
    }

    /// The same, without waiting: what the disk has to be waited for is told elsewhere.
    func lookUp(_ request: URLRequest, _ completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void) {
        switch (find(request), find(request, ofProtocol: true)) {
        case (.hit(let hit), .miss), (.hit(let hit), .unavailable):
            if case .bytes = hit.body { return completionHandler(CachedURLResponse(hit, for: request)) }
        case (.miss, .miss), (.unavailable, .unavailable): return completionHandler(nil)
        default: break
        }
        // Not on the thread of the disk's queue: no code of the app runs there.
        DispatchQueue.global().async { completionHandler(self.lookUp(request)) }
    }

    private func find(_ request: URLRequest, ofProtocol: Bool = false) -> ResponseCache.Lookup {
        guard Self.isServed(request), let key = CacheKey(request) else { return .miss }
        let now = Date().timeIntervalSinceReferenceDate
        let text = ofProtocol ? key.ofProtocolAnswer : key.text
        return store.lookUp(key: text, sent: SentFields(CacheKey.fields(of: request)), now: now)
    }

    /// Only the answers to GET are kept.
    private static func isServed(_ request: URLRequest) -> Bool { request.httpMethod ?? "GET" == "GET" }

    // MARK: Storing

    func keep(_ entry: CachedURLResponse, _ request: URLRequest) {
        keep(entry, request, isLimited: false)
        waitForDisk()
    }

    /// Keeps an entry, of a class of the app where it has an origin; `isLimited` where it came from a load.
    func keep(_ entry: CachedURLResponse, _ request: URLRequest, isLimited: Bool) {
        guard entry.storagePolicy != .notAllowed, Self.isServed(request), let text = CacheKey(request),
            case let key = entry.origin == nil ? text.text : text.ofProtocolAnswer,
            let fields = store.sealed(SentFields(entry.sentFields ?? CacheKey.fields(of: request))),
            let response = entry.stored(
                under: key,
                requestHeaders: fields,
                now: Date().timeIntervalSinceReferenceDate
            )
        else { return }
        let body = entry.data
        let notes = entry.notes(under: key)
        let writer = store.writer(
            for: response,
            expectedLength: Int64(body.count),
            userInfo: notes?.encoded(),
            attachment: notes,
            // What is too large for the disk may be small enough for the memory.
            memoryOnly: entry.storagePolicy == .allowedInMemoryOnly
                || body.count > store.bodyLimit(memoryOnly: false, isLimited: isLimited),
            isLimited: isLimited
        )
        if let writer {
            body.withUnsafeBytes { writer.append($0) }
            writer.finish()
        } else {
            store.remove(key: key)
        }
    }

    /// Until what was changed before has reached the files, or the disk turns out not to answer.
    func waitForDisk() { store.waitForChanges() }
}
