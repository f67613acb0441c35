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
    /// Whether the session enforces HTTP Strict Transport Security (RFC 6797), for hosts that request it and preloaded top-level
    /// domains.
    ///
    /// Default true.
    ///
    /// A request for `http` is then sent over `https`, and nothing is sent before. Its metrics have a transaction for the upgrade,
    /// which used no network. Policies are stored in the program's data directory, and by an ephemeral session in memory.
    ///
    /// Not in Apple's API, where HSTS cannot be disabled.
    public var usesHTTPStrictTransportSecurity: Bool {
        get { get { $0.policy.usesStrictTransportSecurity } }
        set { set { $0.policy.usesStrictTransportSecurity = newValue } }
    }

    /// Whether a Negotiate challenge is answered with the Kerberos ticket of the user who runs the process, without asking the
    /// delegate; default true.
    ///
    /// Set it to false if the app determines the user: then only the user info of a URL, the credential storage and the delegate
    /// do.
    ///
    /// Not in Apple's API, where it cannot be disabled.
    public var usesKerberosTickets: Bool {
        get { get { $0.policy.usesKerberosTickets } }
        set { set { $0.policy.usesKerberosTickets = newValue } }
    }

    /// The `NSAppTransportSecurity` dictionary of the session.
    ///
    /// Default nil: the program's own, from the `Info.plist` of its bundle or beside its executable. If there is none, the defaults
    /// apply: https everywhere, with TLS 1.2 and forward secrecy.
    ///
    /// IP addresses, names without a dot, and `.local` are exempt. A load that is refused fails with
    /// `URLError.appTransportSecurityRequiresSecureConnection` and a message that names the key which would allow it. The
    /// environment variable `NSAllowsArbitraryLoads=YES` sets that key for the whole process, unless a dictionary is set here.
    ///
    /// Not in Apple's API, where only the `Info.plist` counts.
    public var appTransportSecurity: [String: Any]? {
        get { snapshot.transportSecurity.map { $0.values.mapValues(\.object) } }
        set {
            let dictionary = newValue.map { TransportSecurityDictionary($0) }
            set { $0.transportSecurity = dictionary }
        }
    }

    /// The root certificates for servers' certificate chains: each DER, or PEM with any number of certificates.
    ///
    /// Default empty: the system's roots. The environment variable SSL_CERT_FILE can name another file for them.
    ///
    /// Data that cannot be parsed counts as a root that issued nothing: if no other root vouches for the server, the load fails
    /// with `URLError.secureConnectionFailed`. There is no fallback to the system's roots.
    ///
    /// Not in Apple's API, where the keychain has the system's and the user's roots.
    public var tlsTrustRoots: [Data] {
        get { get { $0.tlsTrustRoots } }
        set { set { $0.tlsTrustRoots = newValue } }
    }
}
