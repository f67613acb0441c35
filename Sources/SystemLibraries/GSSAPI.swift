//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CSystemLibraries

/// Kerberos for HTTP's Negotiate (RFC 4559), from the system's GSSAPI library: MIT's or Heimdal's.
///
/// Which realm, KDC, ticket cache and keytab there are is that library's configuration (krb5.conf, KRB5_CONFIG, KRB5CCNAME).
package enum GSSAPI {
    /// Goes from context to context; the C side never changes it once it is made.
    ///
    /// Sendable because nothing changes what it points to, and nothing frees it.
    struct Library: @unchecked Sendable {
        let functions: OpaquePointer
    }

    static let library: Library? = {
        guard let opened = SystemLibrary.open(["libgssapi_krb5.so.2", "libgssapi.so.3"]) else { return nil }
        var missing: UnsafePointer<CChar>?
        guard let functions = csl_gss_load(opened.handle, &missing) else {
            opened.reject(missing: missing.map { String(cString: $0) } ?? "")
            return nil
        }
        return Library(functions: functions)
    }()

    /// Whether there is such a library at all, which is opened the first time.
    package static var isAvailable: Bool { library != nil }

    /// What one leg came to.
    package struct Step: Sendable, Hashable {
        /// What the server has to be sent; nil if there is nothing more to say.
        package var token: [UInt8]?
        /// Whether the context stands; until then the server's next token is wanted.
        package var isDone: Bool
        /// Whether the server has proved who it is.
        package var isMutual: Bool

        package init(token: [UInt8]?, isDone: Bool, isMutual: Bool) {
            self.token = token
            self.isDone = isDone
            self.isMutual = isMutual
        }
    }
}
