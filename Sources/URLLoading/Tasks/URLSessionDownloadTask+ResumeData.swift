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
    /// Resume data without the header fields of the request, which may be secret: to be kept where others might read it, and used with
    /// a request that has them.
    ///
    /// Not in Apple's API.
    ///
    /// - Returns: The data, or nil where what was given is no resume data.
    public static func resumeDataWithoutHeaderFields(_ resumeData: Data) -> Data? {
        guard var point = try? ResumePoint(decoding: resumeData) else { return nil }
        point.headers = HeaderBlock()
        return point.encodedIfPossible()
    }
}
