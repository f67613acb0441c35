// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// The credentials that the user selects: those of one server, optionally limited to a realm, a method and a user name.
struct CredentialSelection {
    /// The authentication methods of credentials, as the options name them.
    enum Method: String, ExpressibleByArgument, CaseIterable {
        case basic, digest, ntlm, negotiate

        var name: String? { StoredCredentials.methods[rawValue] }
    }

    let place: ServerOrigin
    /// The realm; nil matches any realm.
    let realm: String?
    /// The authentication method; nil matches any method.
    let method: Method?

    init(url: String, realm: String?, method: Method?) throws {
        guard let place = ServerOrigin(try RequestOptions.url(url)) else {
            throw ToolFailure(3, "credentials can be stored only for http and https URLs")
        }
        self.place = place
        self.realm = realm
        self.method = method
    }

    /// The protection space to store a credential for.
    var space: URLProtectionSpace {
        URLProtectionSpace(
            host: place.host, port: place.port, protocol: place.scheme, realm: realm, authenticationMethod: method?.name
        )
    }

    /// Returns the stored credentials that match the selection and the user name; nil matches any user name.
    func credentials(of user: String?) -> [(space: URLProtectionSpace, credential: URLCredential)] {
        Self.all().filter { space, credential in
            !space.isProxy() && space.host.lowercased() == place.host && port(of: space) == place.port
                && space.protocol == place.scheme && (realm == nil || space.realm == realm)
                && (method == nil || space.authenticationMethod == method?.name) && (user == nil || credential.user == user)
        }
    }

    static func all() -> [(space: URLProtectionSpace, credential: URLCredential)] {
        URLCredentialStorage.shared.allCredentials.flatMap { space, credentials in
            credentials.values.map { (space, $0) }
        }
    }

    private func port(of space: URLProtectionSpace) -> Int {
        space.port == 0 ? (space.protocol == NSURLProtectionSpaceHTTPS ? 443 : 80) : space.port
    }
}
