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
    /// Whether `ftp` URLs are loaded only over TLS, which `AUTH TLS` starts before the login; data connections are secured, too
    /// (RFC 4217).
    ///
    /// Default false: `ftp` is cleartext, and App Transport Security treats it as it treats `http`.
    ///
    /// If the server does not start TLS, the task fails with `URLError.secureConnectionFailed` before the user name is sent; if it
    /// does not secure its data connections, before the file name is sent. `ftps` URLs, whose servers start with TLS, need no
    /// setting. No effect on background sessions, which load only `http` and `https`.
    ///
    /// Not in Apple's API, which does not support FTP over TLS.
    public var requiresSecureFTP: Bool {
        get { get { $0.policy.requiresSecureFTP } }
        set { set { $0.policy.requiresSecureFTP = newValue } }
    }

    /// Whether an upload to an `ftp` or `ftps` URL sends only what the file on the server lacks: it requests the `SIZE` and stores
    /// from there with `REST`, or with `APPE` if the server refuses that.
    ///
    /// Default false: an upload replaces the file.
    ///
    /// The app must know that the file on the server is a prefix of the body: FTP has no way to verify it. A file longer than the
    /// body is replaced. At the end the file on the server must be as long as the body, or the task fails with
    /// `URLError.networkConnectionLost`. The counts of bytes sent exclude what was already on the server.
    ///
    /// Not in Apple's API.
    public var resumesFTPUploads: Bool {
        get { get { $0.policy.resumesFTPUploads } }
        set { set { $0.policy.resumesFTPUploads = newValue } }
    }
}
