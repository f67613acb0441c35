//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import Foundation
internal import LoadingModel

extension URLSessionConfiguration {
    /// Whether `ftp` URLs are loaded over TLS alone, which is begun by `AUTH TLS` before the login, with data connections that are secured,
    /// too (RFC 4217).
    ///
    /// Default false: `ftp` is in clear, and App Transport Security treats it as it treats `http`.
    ///
    /// A server that does not begin TLS fails the task with `URLError.secureConnectionFailed` before it is told who the user is, and one
    /// that does not secure its data connections before it is told which file. `ftps` URLs, whose servers begin with TLS, need no setting.
    /// Without meaning for background sessions, which load `http` and `https` alone.
    ///
    /// Not in Apple's API, which has no FTP over TLS.
    public var requiresSecureFTP: Bool {
        get { get { $0.policy.requiresSecureFTP } }
        set { set { $0.policy.requiresSecureFTP = newValue } }
    }

    /// Whether an upload to an `ftp` or `ftps` URL sends only what the server's file of that name is short of: it asks for the `SIZE`,
    /// and stores from there by `REST`, or by `APPE` where the server refuses that.
    ///
    /// Default false: an upload replaces the file.
    ///
    /// That what is there is the beginning of what is sent is the app's to know: FTP has no means to tell. A file that is longer than
    /// the body is replaced. In the end the server's file must be as long as the body, or the task fails with
    /// `URLError.networkConnectionLost`. The counts of bytes that are sent leave out what was there.
    ///
    /// Not in Apple's API.
    public var resumesFTPUploads: Bool {
        get { get { $0.policy.resumesFTPUploads } }
        set { set { $0.policy.resumesFTPUploads = newValue } }
    }
}
