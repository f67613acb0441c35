// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// The `userInfo` key for the data needed to resume a failed or cancelled upload.
public let NSURLSessionUploadTaskResumeData = "NSURLSessionUploadTaskResumeData"

/// The `userInfo` key for the reason why the network was unavailable: a raw value of `URLError.NetworkUnavailableReason`.
public let NSURLErrorNetworkUnavailableReasonKey = "NSURLErrorNetworkUnavailableReasonKey"

/// The error code for a file outside the safe area: -1104.
///
/// `URLError.Code` on Linux is a closed enumeration that lacks this code.
public let NSURLErrorFileOutsideSafeArea = -1104

extension URLError {
    /// The reason why the network was unavailable.
    ///
    /// Raw values are Apple's.
    public enum NetworkUnavailableReason: Int, Sendable {
        /// Only a cellular network was available, and the request does not allow it.
        case cellular = 0
        /// Only an expensive network was available, and the request does not allow it.
        case expensive = 1
        /// Only a network in low data mode was available, and the request does not allow it.
        case constrained = 2
        /// Only an ultra-constrained network was available, and the request does not allow it.
        case ultraConstrained = 3
    }

    /// The reason why a background task was cancelled.
    ///
    /// Raw values are Apple's.
    public enum BackgroundTaskCancelledReason: Int, Sendable {
        /// The user quit the app.
        case userForceQuitApplication = 0
        /// Background updates are disabled.
        case backgroundUpdatesDisabled = 1
        /// The system lacked resources.
        case insufficientSystemResources = 2
    }

    /// The data needed to resume a failed or cancelled upload, or nil if the upload cannot be resumed.
    public var uploadTaskResumeData: Data? { userInfo[NSURLSessionUploadTaskResumeData] as? Data }

    /// The reason why the network was unavailable, or nil if the error has another cause.
    public var networkUnavailableReason: NetworkUnavailableReason? {
        (userInfo[NSURLErrorNetworkUnavailableReasonKey] as? Int).flatMap(NetworkUnavailableReason.init)
    }

    /// The reason why a background task was cancelled, or nil if the error has another cause.
    public var backgroundTaskCancelledReason: BackgroundTaskCancelledReason? {
        (userInfo[NSURLErrorBackgroundTaskCancelledReasonKey] as? Int).flatMap(BackgroundTaskCancelledReason.init)
    }

    /// App Transport Security or HSTS requires the load to use TLS, but the load does not use it: -1022.
    ///
    /// Foundation on Linux has the code but not this short name.
    public static var appTransportSecurityRequiresSecureConnection: URLError.Code {
        .appTransportSecurityRequiresSecureConnection
    }

    /// The body is longer than allowed, or a GET request has a body: -1103.
    ///
    /// Foundation on Linux has the code but not this short name.
    public static var dataLengthExceedsMaximum: URLError.Code { .dataLengthExceedsMaximum }
}

/// The value for the size of a transfer whose size is unknown: -1.
public let NSURLSessionTransferSizeUnknown: Int64 = -1

/// The `userInfo` key for the data needed to resume a failed download.
public let NSURLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"

extension URLError {
    /// The data needed to resume a failed download, or nil if the download cannot be resumed.
    ///
    /// Pass it to `URLSession.downloadTask(withResumeData:)`.
    public var downloadTaskResumeData: Data? { userInfo[NSURLSessionDownloadTaskResumeData] as? Data }
}

extension URLError {
    /// The certificate chain of a server that was not trusted, or nil if the error has another cause.
    public var failureURLPeerTrust: SecTrust? { userInfo[NSURLErrorFailingURLPeerTrustErrorKey] as? SecTrust }
}
