//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import Synchronization
import URLLoading
public import URLLoadingArchive

extension HTTPArchive {
    /// Answers requests as the archive has it, for `URLSessionConfiguration.stubbed(by:)`.
    ///
    /// An entry is for a request of its method and its URL, without a fragment; secrets that ``HTTPArchive/Redaction`` takes out may be other ones.
    /// Of several entries for the same, each answers once in their order, and the last one ever after. An entry that failed fails with
    /// `URLError.cannotConnectToHost`.
    ///
    /// - Parameter matchesBodies: Whether the request's body has to be that of the entry, too.
    /// - Returns: The answer. For a request that no entry is for, it throws `URLError.resourceUnavailable` with a description that names it.
    public func replay(matchesBodies: Bool = false) -> StubbedAnswer {
        let replay = ArchiveReplay(self, matchesBodies: matchesBodies)
        return { try replay.answer($0) }
    }
}

/// The entries that are still to answer, by what they are for.
private final class ArchiveReplay: Sendable {
    private struct Key: Hashable {
        let method: String
        let url: String
        let body: String?
    }

    private let matchesBodies: Bool
    private let waiting: Mutex<[Key: [HTTPArchive.Entry]]>

    init(_ archive: HTTPArchive, matchesBodies: Bool) {
        self.matchesBodies = matchesBodies
        var entries: [Key: [HTTPArchive.Entry]] = [:]
        for entry in archive.entries {
            entries[Self.key(entry.request, matchesBodies), default: []].append(entry)
        }
        waiting = Mutex(entries)
    }

    /// Without secrets on both sides, so that an archive without them answers, and one with them as well.
    private static func key(_ request: HTTPArchive.Request, _ matchesBodies: Bool) -> Key {
        var archive = HTTPArchive()
        archive.append(.init(startedDateTime: Date(timeIntervalSince1970: 0), request: request, response: .init(status: 0)))
        archive.redact()
        let plain = archive.entries.first?.request ?? request
        let body = matchesBodies ? plain.postData?.data?.base64EncodedString() ?? "" : nil
        return Key(method: plain.method.uppercased(), url: String(plain.url.prefix { $0 != "#" }), body: body)
    }

    func answer(_ request: URLRequest) throws -> (HTTPURLResponse, Data) {
        let method = request.httpMethod ?? "GET"
        let url = request.url?.absoluteString ?? ""
        let body = request.httpBody.map { data in
            HTTPArchive.PostData(
                mimeType: request.value(forHTTPHeaderField: "Content-Type") ?? "application/octet-stream",
                text: data.base64EncodedString(), encoding: "base64")
        }
        let key = Self.key(.init(method: method, url: url, postData: body), matchesBodies)
        let entry = waiting.withLock { waiting -> HTTPArchive.Entry? in
            guard let entries = waiting[key], let first = entries.first else { return nil }
            if entries.count > 1 { waiting[key] = Array(entries.dropFirst()) }
            return first
        }
        guard let entry else {
            throw failure(.resourceUnavailable, "the archive has no answer to \(method) \(key.url)", request)
        }
        guard entry.response.status != 0 else {
            throw failure(
                .cannotConnectToHost, "in the archive, \(method) \(key.url) failed: \(entry.response.error ?? "no reason")",
                request)
        }
        return (try Self.response(entry, to: request), entry.response.content.data ?? Data())
    }

    /// The body is there decoded, and as a whole.
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
