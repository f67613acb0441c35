// SPDX-License-Identifier: Apache-2.0

public import Foundation
import HTTPRules
import HTTPWire

extension URLSession {
    /// Makes a task that resumes an earlier download with a new request instead of the request in the resume data.
    ///
    /// The request must be for the same resource: if its scheme, host, port or path differs, the task fails with
    /// `URLError.cannotOpenFile`. The query may differ, as it does in signed links.
    ///
    /// Not in Apple's API, where a download is resumed with its first request, even if the credentials in it have expired.
    ///
    /// - Returns: The task, suspended.
    public func downloadTask(with request: URLRequest, resumeFrom resumeData: Data) -> URLSessionDownloadTask {
        makeDownloadTask(request, resumeData, .delegate)
    }
}

extension URLSessionDownloadTask {
    /// Returns a copy of resume data without the request's header fields and the passwords in its URLs, which may be secret.
    ///
    /// The result may be stored where others can read it. To resume the download, pass the result to
    /// ``URLSession/downloadTask(with:resumeFrom:)``, with a request that contains the secrets.
    ///
    /// Not in Apple's API.
    ///
    /// - Returns: The data, or nil if the argument is not resume data.
    public static func resumeDataWithoutHeaderFields(_ resumeData: Data) -> Data? {
        guard var point = try? ResumePoint(decoding: resumeData), let url = point.url.withoutPassword,
            let original = point.originalURL.withoutPassword
        else { return nil }
        point.headers = HeaderBlock()
        (point.url, point.originalURL) = (url, original)
        point.settings.mainDocumentURL = point.settings.mainDocumentURL?.withoutPassword
        return point.encodedIfPossible()
    }

    /// Returns a copy of resume data, updated with the current length of the temporary file.
    ///
    /// Use this method after the program was killed, with the data from
    /// ``URLSessionDownloadDelegate/urlSession(_:downloadTask:didBeginFileWithResumeData:)``. Only one process may have written the
    /// file, and that process must no longer be writing. After a power failure the file may lack bytes that the kernel had not yet
    /// written to disk.
    ///
    /// Not in Apple's API.
    ///
    /// - Parameters:
    ///   - resumeData: The data.
    ///   - folder: The directory of the file: `NSTemporaryDirectory()` in the process that downloaded it.
    /// - Returns: The data, or nil if the argument is not resume data, or the file does not exist or is empty.
    public static func resumeData(_ resumeData: Data, forWhatIsIn folder: URL) -> Data? {
        guard var point = try? ResumePoint(decoding: resumeData),
            let facts = try? FileManager.default.attributesOfItem(atPath: folder.appending(path: point.temporaryFileName).path),
            facts[.type] as? FileAttributeType == .typeRegular, let size = (facts[.size] as? NSNumber)?.int64Value, size > 0
        else { return nil }
        point.receivedByteCount = size
        return point.encodedIfPossible()
    }
}
