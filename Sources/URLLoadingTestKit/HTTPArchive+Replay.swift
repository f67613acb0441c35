// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading
public import URLLoadingArchive

extension HTTPArchive {
    /// Answers requests from the archive, for `URLSessionConfiguration.stubbed(by:)`.
    ///
    /// An entry matches requests with the same method and URL, without the fragment. Secrets that ``HTTPArchive/Redaction`` removes
    /// may differ. If several entries match, each is used once, in order, and the last one is used for all further requests. A
    /// request that matches the entry of a failed load fails with `URLError.cannotConnectToHost`.
    ///
    /// - Parameter matchesBodies: Whether the request's body must match as well; default false.
    /// - Returns: A closure that answers requests. If no entry matches a request, it throws `URLError.resourceUnavailable` with a
    ///   description that names the request.
    public func replay(matchesBodies: Bool = false) -> StubbedAnswer {
        let replay = ArchiveReplay(self, matchesBodies: matchesBodies)
        return { try replay.answer($0) }
    }
}

/// Answers requests with the entries of an archive: each entry is used once, but the last one for a request is reused.
private final class ArchiveReplay: Sendable {
    private struct Key: Hashable {
        let method: String
        let url: String
        let body: String?

        var isRedacted: Bool {
            url.contains("REDACTED")
                || body.flatMap { Data(base64Encoded: $0) }.map { String(decoding: $0, as: UTF8.self).contains("REDACTED") }
                    == true
        }
    }

    /// The indices of the entries, keyed by the recorded requests; entries whose secrets were removed are also keyed by the
    /// redacted requests.
    private struct UnusedEntries {
        var exact: [Key: [Int]] = [:]
        var redacted: [Key: [Int]] = [:]
    }

    private let matchesBodies: Bool
    private let entries: [HTTPArchive.Entry]
    private let unusedEntries: Mutex<UnusedEntries>

    init(_ archive: HTTPArchive, matchesBodies: Bool) {
        self.matchesBodies = matchesBodies
        entries = archive.entries
        var unusedEntries = UnusedEntries()
        for (number, entry) in archive.entries.enumerated() {
            let (exact, redacted) = Self.keys(entry.request, matchesBodies)
            unusedEntries.exact[exact, default: []].append(number)
            // A redacted entry matches requests that differ only in the secrets.
            if exact == redacted, exact.isRedacted { unusedEntries.redacted[redacted, default: []].append(number) }
        }
        self.unusedEntries = Mutex(unusedEntries)
    }

    /// Returns the keys of a request, as it is and redacted.
    private static func keys(_ request: HTTPArchive.Request, _ matchesBodies: Bool) -> (exact: Key, redacted: Key) {
        func key(_ request: HTTPArchive.Request) -> Key {
            let body = matchesBodies ? request.postData?.data?.base64EncodedString() ?? "" : nil
            return Key(method: request.method.uppercased(), url: String(request.url.prefix { $0 != "#" }), body: body)
        }
        var archive = HTTPArchive()
        archive.append(.init(startedDateTime: Date(timeIntervalSince1970: 0), request: request, response: .init(status: 0)))
        archive.redact()
        return (key(request), key(archive.entries.first?.request ?? request))
    }

    func answer(_ request: URLRequest) throws -> (HTTPURLResponse, Data) {
        let method = request.httpMethod ?? "GET"
        let url = request.url?.absoluteString ?? ""
        let body = request.httpBody.map { data in
            HTTPArchive.PostData(
                mimeType: request.value(forHTTPHeaderField: "Content-Type") ?? "application/octet-stream",
                text: data.base64EncodedString(), encoding: "base64")
        }
        let (key, redacted) = Self.keys(.init(method: method, url: url, postData: body), matchesBodies)
        let number = unusedEntries.withLock { unusedEntries -> Int? in
            Self.take(key, from: &unusedEntries.exact) ?? Self.take(redacted, from: &unusedEntries.redacted)
        }
        let entry = number.map { entries[$0] }
        guard let entry else {
            throw failure(.resourceUnavailable, "the archive has no response for \(method) \(redacted.url)", request)
        }
        guard entry.response.status != 0 else {
            throw failure(
                .cannotConnectToHost, "in the archive, \(method) \(redacted.url) failed: \(entry.response.error ?? "unknown")",
                request)
        }
        return (try Self.response(entry, to: request), entry.response.content.data ?? Data())
    }

    /// Removes and returns the next entry for a key; the last entry is not removed.
    private static func take(_ key: Key, from unusedEntries: inout [Key: [Int]]) -> Int? {
        guard let numbers = unusedEntries[key], let first = numbers.first else { return nil }
        if numbers.count > 1 { unusedEntries[key] = Array(numbers.dropFirst()) }
        return first
    }

    /// Makes the response to a request.
    ///
    /// Archived bodies are complete and decoded, so the fields about their length and coding are removed.
    private static func response(_ entry: HTTPArchive.Entry, to request: URLRequest) throws -> HTTPURLResponse {
        var fields: [String: String] = [:]
        for field in entry.response.headers
        where !["content-encoding", "transfer-encoding", "content-length"].contains(field.name.lowercased()) {
            let name = fields.keys.first { $0.lowercased() == field.name.lowercased() } ?? field.name
            fields[name] = fields[name].map { $0 + ", " + field.value } ?? field.value
        }
        return try .stub(for: request, status: entry.response.status, fields: fields)
    }

    private func failure(_ code: URLError.Code, _ words: String, _ request: URLRequest) -> URLError {
        var facts: [String: Any] = [NSLocalizedDescriptionKey: words]
        facts[NSURLErrorFailingURLErrorKey] = request.url
        return URLError(code, userInfo: facts)
    }
}
