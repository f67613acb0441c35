// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// The credentials that `urlsession credentials` stores.
///
/// A session itself finds credentials whose protection space is exactly that of a challenge. This type finds credentials that were
/// stored for a server without a realm or without a method.
enum StoredCredentials {
    /// The authentication methods, by the names that users write.
    static let methods = [
        "basic": NSURLAuthenticationMethodHTTPBasic, "digest": NSURLAuthenticationMethodHTTPDigest,
        "ntlm": NSURLAuthenticationMethodNTLM, "negotiate": NSURLAuthenticationMethodNegotiate,
    ]

    /// Returns the best match for a challenge among the credentials that were stored without a realm, without a method, or without
    /// both.
    static func credential(for space: URLProtectionSpace) -> URLCredential? {
        guard methods.values.contains(space.authenticationMethod) else { return nil }
        let wider: [(realm: String?, method: String)] = [
            (nil, space.authenticationMethod), (space.realm, NSURLAuthenticationMethodDefault),
            (nil, NSURLAuthenticationMethodDefault),
        ]
        for (realm, method) in wider {
            let wider = URLProtectionSpace(
                host: space.host, port: space.port, protocol: space.protocol, realm: realm, authenticationMethod: method
            )
            let storage = URLCredentialStorage.shared
            if let chosen = storage.defaultCredential(for: wider) { return chosen }
            if let all = storage.credentials(for: wider), all.count == 1 { return all.first?.value }
        }
        return nil
    }

    /// Returns the method's short name.
    static func name(ofMethod method: String) -> String {
        if method == NSURLAuthenticationMethodDefault { return "any" }
        return methods.first { $0.value == method }?.key ?? method.replacingOccurrences(of: "NSURLAuthenticationMethod", with: "")
    }
}
