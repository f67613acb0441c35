//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CSystemLibraries

/// Kerberos for HTTP's Negotiate scheme (RFC 4559), through the system's GSSAPI library, which is MIT's or Heimdal's.
///
/// The library's own configuration determines realm, KDC, ticket cache and keytab (krb5.conf, KRB5_CONFIG, KRB5CCNAME).
package enum GSSAPI {
    /// The library's function table, which contexts share.
    ///
    /// Sendable because the function table behind the pointer is never changed or freed.
    struct Library: @unchecked Sendable {
        let functions: OpaquePointer
    }

    static let library: Library? = {
        guard let opened = SystemLibrary.open(["libgssapi_krb5.so.2", "libgssapi.so.3"]) else { return nil }
        var missing: UnsafePointer<CChar>?
        guard let functions = clib_gss_load(opened.handle, &missing) else {
            opened.reject(missing: missing.map { String(cString: $0) } ?? "")
            return nil
        }
        return Library(functions: functions)
    }()

    /// Whether a GSSAPI library is installed; opens it on first use.
    package static var isAvailable: Bool { library != nil }

    /// The result of one step.
    package struct Step: Sendable, Hashable {
        /// The token to send to the server; nil if there is no token to send.
        package var token: [UInt8]?
        /// Whether the context is established; until then, the server's next token is needed.
        package var isDone: Bool
        /// Whether the server has proved its identity.
        package var isMutual: Bool

        package init(token: [UInt8]?, isDone: Bool, isMutual: Bool) {
            self.token = token
            self.isDone = isDone
            self.isMutual = isMutual
        }
    }
}
