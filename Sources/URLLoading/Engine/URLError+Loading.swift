//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

/// The size of a transfer that is not known.
public let NSURLSessionTransferSizeUnknown: Int64 = -1

/// The key in an error's `userInfo` under which a failed download keeps what is needed to go on with it.
public let NSURLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"

extension URLError {
    /// What a failed download left behind to go on with, or nil where it cannot be resumed.
    ///
    /// Hand it to `URLSession.downloadTask(withResumeData:)`.
    public var downloadTaskResumeData: Data? { userInfo[NSURLSessionDownloadTaskResumeData] as? Data }
}
