// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The folder in which a process started by a test keeps its data.
enum TestHome {
    /// Makes this process keep its data below a folder; must be called before it accesses any.
    static func settle(in home: String) {
        setenv("HOME", home, 1)
        setenv("XDG_DATA_HOME", home + "/data", 1)
        setenv("XDG_CACHE_HOME", home + "/cache", 1)
    }

    /// Makes this process use a certificate as the system's only root; must be called before the first TLS handshake.
    ///
    /// The file that `SSL_CERT_FILE` names is in memory, because processes whose files are traced must not create any.
    static func trust(_ root: Data) throws {
        // The C library exports `memfd_create`, but its header does not declare it.
        typealias Maker = @convention(c) (UnsafePointer<CChar>, CUnsignedInt) -> CInt
        let maker = dlsym(nil, "memfd_create").map { unsafeBitCast($0, to: Maker.self) }
        guard let file = maker?("roots", 0), file >= 0 else { throw POSIXError(.EIO) }
        let text =
            "-----BEGIN CERTIFICATE-----\n\(root.base64EncodedString(options: .lineLength64Characters))\n-----END CERTIFICATE-----\n"
        try FileHandle(fileDescriptor: file, closeOnDealloc: false).write(contentsOf: Data(text.utf8))
        setenv("SSL_CERT_FILE", "/proc/\(getpid())/fd/\(file)", 1)
        unsetenv("SSL_CERT_DIR")
    }
}
