// SPDX-License-Identifier: Apache-2.0

import Foundation
internal import LoadingModel

extension URLSessionConfiguration {
    /// Whether `ftp` URLs are loaded only over TLS: `AUTH TLS` before the login, and TLS on data connections (RFC 4217).
    ///
    /// Default false: `ftp` is cleartext, and App Transport Security treats it like `http`.
    ///
    /// If the server does not support TLS, the task fails with `URLError.secureConnectionFailed` before the user name is sent. If
    /// the server refuses TLS for data connections, the task fails before the file name is sent. `ftps` URLs do not need this
    /// setting: their connections start with TLS. No effect on background sessions, which load only `http` and `https`.
    ///
    /// Not in Apple's API, which does not support FTP over TLS.
    public var requiresSecureFTP: Bool {
        get { get { $0.policy.requiresSecureFTP } }
        set { set { $0.policy.requiresSecureFTP = newValue } }
    }

    /// Whether an upload to an `ftp` or `ftps` URL sends only the bytes that the file on the server lacks.
    ///
    /// The upload asks for the `SIZE` of that file and continues from there with `REST`, or with `APPE` if the server refuses
    /// `REST`.
    ///
    /// Default false: an upload replaces the file.
    ///
    /// The app must know that the file on the server is a prefix of the body, because FTP cannot verify it. If the file is longer
    /// than the body, the upload replaces the file. If the file's length differs from the body's after the upload, the task fails
    /// with `URLError.networkConnectionLost`. The counts of bytes sent exclude the bytes that were already on the server.
    ///
    /// Not in Apple's API.
    public var resumesFTPUploads: Bool {
        get { get { $0.policy.resumesFTPUploads } }
        set { set { $0.policy.resumesFTPUploads = newValue } }
    }
}
