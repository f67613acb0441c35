//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

/// What a session tells about download tasks.
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
    /// The download is complete. Move the file or open it before returning: it is deleted when the method returns.
    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)

    /// Bytes were written: newly, in all, and of how many (`NSURLSessionTransferSizeUnknown` where that is not known).
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    )

    /// A download goes on where an earlier one stopped: at an offset, of how many bytes in all (-1 where that is not known).
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    )

    /// A download's file is begun, or gone on with, and the server lets it be gone on with later.
    ///
    /// Resume data that is kept now is of use even if the program is killed without another word:
    /// ``URLSessionDownloadTask/resumeData(_:forWhatIsIn:)`` brings it up to date then.
    ///
    /// Not in Apple's API, and not told of background sessions, whose daemon keeps what there is.
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
