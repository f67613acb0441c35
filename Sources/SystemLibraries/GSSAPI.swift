// SPDX-License-Identifier: Apache-2.0

import CSystemLibraries

/// Kerberos for HTTP's Negotiate scheme (RFC 4559), through the system's GSSAPI library, which is MIT's or Heimdal's.
///
/// The library's own configuration determines realm, KDC, ticket cache and keytab (krb5.conf, KRB5_CONFIG, KRB5CCNAME).
package enum GSSAPI {
    static let library = SystemLibrary.functions(of: ["libgssapi_krb5.so.2", "libgssapi.so.3"], clib_gss_load)

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
