//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
internal import LoadingModel

extension URLSessionConfiguration {
    /// Whether the session enforces HTTP Strict Transport Security (RFC 6797), for hosts that request it and for preloaded
    /// top-level domains.
    ///
    /// Default true.
    ///
    /// Requests for `http` URLs of such hosts are sent over `https` only. Their metrics have a transaction for the upgrade, which
    /// used no network. Policies are stored in the program's data directory, or, by an ephemeral session, in memory.
    ///
    /// Not in Apple's API, where HSTS cannot be disabled.
    public var usesHTTPStrictTransportSecurity: Bool {
        get { get { $0.policy.usesStrictTransportSecurity } }
        set { set { $0.policy.usesStrictTransportSecurity = newValue } }
    }

    /// Whether a Negotiate challenge is answered with the Kerberos ticket of the user who runs the process, without asking the
    /// delegate; default true.
    ///
    /// Set it to false if the app decides which user to authenticate as: then only the user info of a URL, the credential storage
    /// and the delegate are asked.
    ///
    /// Not in Apple's API, where it cannot be disabled.
    public var usesKerberosTickets: Bool {
        get { get { $0.policy.usesKerberosTickets } }
        set { set { $0.policy.usesKerberosTickets = newValue } }
    }

    /// The `NSAppTransportSecurity` dictionary of the session.
    ///
    /// Default nil: the dictionary in the `Info.plist` of the program's bundle, or beside its executable. If there is none, the
    /// defaults apply: HTTPS is required, with TLS 1.2 and forward secrecy.
    ///
    /// IP addresses, names without a dot, and `.local` names are exempt. A load that is refused fails with
    /// `URLError.appTransportSecurityRequiresSecureConnection` and a message that names the key that would allow it. The
    /// environment variable `NSAllowsArbitraryLoads=YES` sets that key for the whole process, but not for configurations whose
    /// dictionary is set here.
    ///
    /// Not in Apple's API, where only the `Info.plist` applies.
    public var appTransportSecurity: [String: Any]? {
        get { snapshot.transportSecurity.map { $0.values.mapValues(\.object) } }
        set {
            let dictionary = newValue.map { TransportSecurityDictionary($0) }
            set { $0.transportSecurity = dictionary }
        }
    }

    /// The trusted root certificates for servers; each item is DER, or PEM with any number of certificates.
    ///
    /// Default empty: the system's roots, or those in the file that the environment variable `SSL_CERT_FILE` names.
    ///
    /// Data that cannot be parsed counts as a root that issued no certificate: if no other root vouches for the server, the load
    /// fails with `URLError.secureConnectionFailed`. There is no fallback to the system's roots.
    ///
    /// Not in Apple's API, where the keychain has the system's and the user's roots.
    public var tlsTrustRoots: [Data] {
        get { get { $0.tlsTrustRoots } }
        set { set { $0.tlsTrustRoots = newValue } }
    }
}
