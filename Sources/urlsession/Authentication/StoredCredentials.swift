//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import URLLoading

/// The credentials that `urlsession credentials` stores.
///
/// A session itself finds the credentials of the exact protection space. This type finds credentials that were stored without a
/// realm or a method, for any challenge of the server.
enum StoredCredentials {
    /// The authentication methods, by the names that users write.
    static let methods = [
        "basic": NSURLAuthenticationMethodHTTPBasic, "digest": NSURLAuthenticationMethodHTTPDigest,
        "ntlm": NSURLAuthenticationMethodNTLM, "negotiate": NSURLAuthenticationMethodNegotiate,
    ]

    /// Returns the stored credential for a challenge of the protection space, the closest match first.
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
