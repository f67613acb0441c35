//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

/// The key in an error's `userInfo` under which a failed or cancelled upload keeps what is needed to go on with it.
public let NSURLSessionUploadTaskResumeData = "NSURLSessionUploadTaskResumeData"

/// The key in an error's `userInfo` that says why the network could not be used: a raw value of
/// `URLError.NetworkUnavailableReason`.
public let NSURLErrorNetworkUnavailableReasonKey = "NSURLErrorNetworkUnavailableReasonKey"

/// The code of an error that is about a file outside the safe area: -1104.
///
/// Linux's `URLError.Code` is a closed enumeration that lacks it.
public let NSURLErrorFileOutsideSafeArea = -1104

extension URLError {
    /// Why the network could not be used.
    ///
    /// Raw values are Apple's.
    public enum NetworkUnavailableReason: Int, Sendable {
        /// Only a cellular network was there, and the request does not allow it.
        case cellular = 0
        /// Only an expensive network was there, and the request does not allow it.
        case expensive = 1
        /// Only a network in low data mode was there, and the request does not allow it.
        case constrained = 2
        /// Only an ultra-constrained network was there, and the request does not allow it.
        case ultraConstrained = 3
    }

    /// Why a background task was cancelled.
    ///
    /// Raw values are Apple's.
    public enum BackgroundTaskCancelledReason: Int, Sendable {
        /// The user ended the app.
        case userForceQuitApplication = 0
        /// Background updates are off.
        case backgroundUpdatesDisabled = 1
        /// The system ran out of resources.
        case insufficientSystemResources = 2
    }

    /// What a failed or cancelled upload left behind to go on with, or nil where it cannot be resumed.
    public var uploadTaskResumeData: Data? { userInfo[NSURLSessionUploadTaskResumeData] as? Data }

    /// Why the network could not be used, or nil where that was not the reason.
    public var networkUnavailableReason: NetworkUnavailableReason? {
        (userInfo[NSURLErrorNetworkUnavailableReasonKey] as? Int).flatMap(NetworkUnavailableReason.init)
    }

    /// Why a background task was cancelled, or nil where that was not the reason.
    public var backgroundTaskCancelledReason: BackgroundTaskCancelledReason? {
        (userInfo[NSURLErrorBackgroundTaskCancelledReasonKey] as? Int).flatMap(BackgroundTaskCancelledReason.init)
    }

    /// The load must use TLS, and did not: -1022.
    ///
    /// Foundation on Linux has the code but not this short name.
    public static var appTransportSecurityRequiresSecureConnection: URLError.Code {
        .appTransportSecurityRequiresSecureConnection
    }

    /// The body is longer than allowed, or a GET request has one: -1103.
    ///
    /// Foundation on Linux has the code but not this short name.
    public static var dataLengthExceedsMaximum: URLError.Code { .dataLengthExceedsMaximum }
}

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

extension URLError {
    /// The chain of certificates that a server presented and that was not trusted, or nil where that was not the reason.
    public var failureURLPeerTrust: SecTrust? { userInfo[NSURLErrorFailingURLPeerTrustErrorKey] as? SecTrust }
}
