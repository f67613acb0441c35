// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// The content for `upload` and `--upload-file`: a file, or standard input.
final class UploadSource: Sendable {
    let path: String
    /// Whether the path is `-`, or curl's `.` (standard input without blocking), which has the same meaning here.
    let isStandardInput: Bool
    /// Whether the file has no length, and is therefore sent as it is read, and only once.
    let isPipe: Bool
    private let wasOpened = Mutex(false)
    private let pace: RateLimiter?

    /// - Parameters:
    ///   - path: The file.
    ///   - rate: The maximum number of bytes per second.
    /// - Throws: If the file cannot be read.
    init(_ path: String, rate: Int64?) throws(ToolFailure) {
        self.path = path
        isStandardInput = path == "-" || path == "."
        pace = rate.map { RateLimiter($0) }
        let real = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        let type = (try? FileManager.default.attributesOfItem(atPath: real))?[.type] as? FileAttributeType
        isPipe = !isStandardInput && type.map { ![.typeRegular, .typeDirectory].contains($0) } ?? false
        if !isStandardInput, access(path, R_OK) != 0 {
            throw ToolFailure.system(26, "cannot read \(path)")
        }
    }

    /// Returns the URL, with the file's name appended if the URL's path is empty or ends with a slash, unless standard input is sent.
    func target(_ url: URL) -> URL {
        guard !isStandardInput, url.path(percentEncoded: true).last.map({ $0 == "/" }) ?? true else { return url }
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return url }
        let name = DataPiece.escaped(Data(URL(fileURLWithPath: path).lastPathComponent.utf8))
        let folder = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        parts.percentEncodedPath = folder + String(decoding: name, as: UTF8.self)
        return parts.url ?? url
    }

    /// Returns the content; nil if standard input or a pipe has already been read.
    func stream() -> InputStream? {
        if isStandardInput || isPipe {
            let isFirst = wasOpened.withLock { wasOpened in
                defer { wasOpened = true }
                return !wasOpened
            }
            guard isFirst else { return nil }
            if isStandardInput, InputFile.hasReadStandardInput { return InputStream(data: Data()) }
        }
        guard let stream = InputStream(fileAtPath: isStandardInput ? "/dev/stdin" : path) else { return nil }
        return pace.map { RateLimitedStream(stream, $0) } ?? stream
    }

    func task(in session: URLSession, with request: URLRequest) -> URLSessionUploadTask {
        guard isStandardInput || isPipe || pace != nil else {
            return session.uploadTask(with: request, fromFile: URL(fileURLWithPath: path))
        }
        var request = request
        if !isStandardInput, request.value(forHTTPHeaderField: "Content-Length") == nil,
            let length = InputFile.exactLength(path)
        {
            request.setValue("\(length)", forHTTPHeaderField: "Content-Length")
        }
        return session.uploadTask(withStreamedRequest: request)
    }
}
