//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
public import Foundation
import HTTPRules
import HTTPWire

extension URLSession {
    /// Makes a task that resumes an earlier download with a request of its own; what the resume data keeps of the earlier request is
    /// not used.
    ///
    /// The request must be for the same resource: where scheme, host, port or path differ, the task fails with
    /// `URLError.cannotOpenFile`. The query may differ, as that of signed links does.
    ///
    /// Not in Apple's API, where a download is resumed with the request it began with, whatever has become of its credentials.
    ///
    /// - Returns: The task, suspended.
    public func downloadTask(with request: URLRequest, resumeFrom resumeData: Data) -> URLSessionDownloadTask {
        makeDownloadTask(request, resumeData, .delegate)
    }
}

extension URLSessionDownloadTask {
    /// Resume data without the header fields of the request, and without a password of its URL, which may be secret: to be kept where
    /// others might read it, and used with a request that has them.
    ///
    /// Not in Apple's API.
    ///
    /// - Returns: The data, or nil where what was given is no resume data.
    public static func resumeDataWithoutHeaderFields(_ resumeData: Data) -> Data? {
        guard var point = try? ResumePoint(decoding: resumeData), let url = point.url.withoutPassword,
            let original = point.originalURL.withoutPassword
        else { return nil }
        point.headers = HeaderBlock()
        (point.url, point.originalURL) = (url, original)
        point.settings.mainDocumentURL = point.settings.mainDocumentURL?.withoutPassword
        return point.encodedIfPossible()
    }

    /// Resume data that says how much of its file there is now: for what a delegate was told when the file was begun
    /// (``URLSessionDownloadDelegate/urlSession(_:downloadTask:didBeginFileWithResumeData:)``), after the program was killed.
    ///
    /// The file may have been written by one process alone, and must not be written any more. What a machine had not brought to the disk when
    /// it lost its power may be missing in it.
    ///
    /// Not in Apple's API.
    ///
    /// - Parameters:
    ///   - resumeData: The data.
    ///   - folder: Where temporary files were (`NSTemporaryDirectory()` of that process).
    /// - Returns: The data, or nil where what was given is no resume data, or its file is not there.
    public static func resumeData(_ resumeData: Data, forWhatIsIn folder: URL) -> Data? {
        guard var point = try? ResumePoint(decoding: resumeData),
            let facts = try? FileManager.default.attributesOfItem(atPath: folder.appending(path: point.temporaryFileName).path),
            facts[.type] as? FileAttributeType == .typeRegular, let size = (facts[.size] as? NSNumber)?.int64Value, size > 0
        else { return nil }
        point.receivedByteCount = size
        return point.encodedIfPossible()
    }
}
