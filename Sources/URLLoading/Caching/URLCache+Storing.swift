// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import HTTPRules
import LoadingModel
import LoadingStores
import Synchronization

extension URLCache {
    /// Whether a cache is an instance of `URLCache` itself, so that a session may use its ``store`` directly.
    static func isPlain(_ cache: URLCache) -> Bool { type(of: cache) == URLCache.self }

    // MARK: Directories

    /// The directory that contains the program's caches.
    static var programDirectory: String? { StoreLocations.cacheDirectory(program: ProcessInfo.processInfo.processName) }

    static var defaultDirectory: String? { programDirectory.map { $0 + "/responses" } }

    // MARK: Lookup

    /// The result of an asynchronous lookup, for the one thread that waits for it.
    private final class LookupResult: Sendable {
        let semaphore = DispatchSemaphore(value: 0)
        let hit = Mutex<ResponseCache.Hit?>(nil)
    }

    /// Returns the newer of the two entries for a request: a response that a session loaded, and one that a `URLProtocol` class
    /// delivered.
    ///
    /// The session's own loaders use only responses that a session loaded. Blocks while reading from disk.
    func lookUp(_ request: URLRequest) -> CachedURLResponse? {
        guard request.storage.load.sentFields == nil else {
            return hit(find(request)).flatMap { CachedURLResponse($0, for: request) }
        }
        let (loaded, delivered) = (hit(find(request)), hit(find(request, ofProtocol: true)))
        guard let loaded, let delivered else { return (loaded ?? delivered).flatMap { CachedURLResponse($0, for: request) } }
        let later = loaded.response.responseTime > delivered.response.responseTime ? loaded : delivered
        return CachedURLResponse(later, for: request)
    }

    /// Returns the stored response that a `URLProtocol` class delivered for a request; blocks while reading from disk.
    func lookUpProtocolResponse(to request: URLRequest) -> CachedURLResponse? {
        hit(find(request, ofProtocol: true)).flatMap { CachedURLResponse($0, for: request) }
    }

    private func hit(_ found: ResponseCache.Lookup) -> ResponseCache.Hit? {
        switch found {
        case .hit(let hit): return hit
        case .miss, .unavailable: return nil
        case .wait(let ask):
            let answer = LookupResult()
            let pending = ask { hit in
                answer.hit.withLock { $0 = hit }
                answer.semaphore.signal()
            }
            while answer.semaphore.wait(timeout: .now() + DiskQueue.patience) == .timedOut {
                guard !pending.isMakingProgress else { continue }
                // If the disk does not respond, the lookup counts as a miss.
                pending.cancel()
                break
            }
            return answer.hit.withLock { $0 }
        }
    }

    /// Looks up a request without blocking: if the disk must be read or there are two entries, the handler is called on another
    /// thread.
    func lookUp(_ request: URLRequest, _ completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void) {
        switch (find(request), find(request, ofProtocol: true)) {
        case (.hit(let hit), .miss), (.hit(let hit), .unavailable):
            if case .bytes = hit.body { return completionHandler(CachedURLResponse(hit, for: request)) }
        case (.miss, .miss), (.unavailable, .unavailable): return completionHandler(nil)
        default: break
        }
        // The handler is not called on the disk queue, which must not run app code.
        DispatchQueue.global().async { completionHandler(self.lookUp(request)) }
    }

    private func find(_ request: URLRequest, ofProtocol: Bool = false) -> ResponseCache.Lookup {
        guard Self.isCacheable(request), let key = CacheKey(request) else { return .miss }
        let now = Date().timeIntervalSinceReferenceDate
        let text = ofProtocol ? key.forProtocolResponse : key.text
        return store.lookUp(key: text, sent: SentFields(CacheKey.fields(of: request)), now: now)
    }

    /// Whether a request is a GET: only responses to GET are stored.
    private static func isCacheable(_ request: URLRequest) -> Bool { request.httpMethod ?? "GET" == "GET" }

    // MARK: Storing

    func keep(_ entry: CachedURLResponse, _ request: URLRequest) {
        keep(entry, request, isLimited: false)
        waitForDisk()
    }

    /// Stores an entry; an entry with an origin is stored under the key for `URLProtocol` responses.
    ///
    /// `isLimited` is true for an entry of a load: its body must not exceed 5 % of the capacity.
    func keep(_ entry: CachedURLResponse, _ request: URLRequest, isLimited: Bool) {
        guard entry.storagePolicy != .notAllowed, Self.isCacheable(request), let text = CacheKey(request),
            case let key = entry.origin == nil ? text.text : text.forProtocolResponse,
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
            // An entry may be too large for the disk, but small enough for memory.
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

    /// Blocks until earlier changes have reached the files, or the disk turns out not to respond.
    func waitForDisk() { store.waitForChanges() }
}
