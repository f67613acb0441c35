// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// The delegate methods for download tasks.
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
    /// Tells the delegate that the download is complete.
    ///
    /// Move the file or open it before returning: the file is deleted when the method returns.
    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)

    /// Reports how many bytes were written since the last call and in total, and how many are expected
    /// (`NSURLSessionTransferSizeUnknown` if unknown).
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    )

    /// Tells the delegate that a download was resumed, with the offset in the file and the expected total in bytes (-1 if unknown).
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    )

    /// Tells the delegate that a download has begun to write its file, or to append to it, and can be resumed later.
    ///
    /// If the app stores the resume data, the download can be resumed even after the program was killed. Before the app resumes the
    /// download, it must update the data with the current length of the file: see
    /// ``URLSessionDownloadTask/resumeData(_:forWhatIsIn:)``.
    ///
    /// Not in Apple's API. Not called for background sessions, because the daemon keeps their partial files.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didBeginFileWithResumeData resumeData: Data
    )
}

extension URLSessionDownloadDelegate {
    /// Does nothing.
    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        _ = DelegateProbe.note(.wroteData, on: self)
    }

    /// Does nothing.
    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        _ = DelegateProbe.note(.resumedAtOffset, on: self)
    }

    /// Does nothing.
    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didBeginFileWithResumeData resumeData: Data
    ) {
        _ = DelegateProbe.note(.beganFile, on: self)
    }
}
