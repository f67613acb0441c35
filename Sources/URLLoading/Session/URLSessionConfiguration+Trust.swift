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
    /// Whether hosts that asked for it, and the top-level domains that are known for it, are spoken to over TLS alone (RFC 6797).
    ///
    /// Default true.
    ///
    /// A request for `http` is then sent over `https`; nothing leaves before. Its metrics have a transaction for that, which used no
    /// network. What hosts asked for is kept in the program's data directory, and by an ephemeral session in memory.
    ///
    /// Not in Apple's API, where it cannot be switched off.
    public var usesHTTPStrictTransportSecurity: Bool {
        get { get { $0.policy.usesStrictTransportSecurity } }
        set { set { $0.policy.usesStrictTransportSecurity = newValue } }
    }

    /// Whether a challenge that says Negotiate is answered with the Kerberos ticket of whoever runs the process, without a
    /// question; default true.
    ///
    /// Set to false where the app itself says who the user is: then only the user info of a URL, the storage and the delegate do.
    ///
    /// Not in Apple's API, where it cannot be switched off.
    public var usesKerberosTickets: Bool {
        get { get { $0.policy.usesKerberosTickets } }
        set { set { $0.policy.usesKerberosTickets = newValue } }
    }

    /// The `NSAppTransportSecurity` dictionary that holds for the session.
    ///
    /// Default nil: the program's own, from the `Info.plist` of its bundle or beside its executable, and where there is none all
    /// of its defaults: https everywhere, with TLS 1.2 and forward secrecy.
    ///
    /// IP addresses, names without a dot, and `.local` are exempt. What is refused fails with
    /// `URLError.appTransportSecurityRequiresSecureConnection`, and a message that names the key which would allow it. The environment
    /// variable `NSAllowsArbitraryLoads=YES` sets that key for the whole process, where no dictionary is set here.
    ///
    /// Not in Apple's API, where only the `Info.plist` counts.
    public var appTransportSecurity: [String: Any]? {
        get { snapshot.transportSecurity.map { $0.values.mapValues(\.object) } }
        set {
            let dictionary = newValue.map { TransportSecurityDictionary($0) }
            set { $0.transportSecurity = dictionary }
        }
    }

    /// The certificates that servers' certificates must lead to: each DER, or PEM with any number of certificates.
    ///
    /// Default empty: the system's roots, for which the environment variable SSL_CERT_FILE may name another file.
    ///
    /// What cannot be read counts as a root that nothing leads to: if no other one vouches for the server, the load fails with
    /// `URLError.secureConnectionFailed`. The system's roots never stand in for it.
    ///
    /// Not in Apple's API, where the keychain has the system's and the user's roots.
    public var tlsTrustRoots: [Data] {
        get { get { $0.tlsTrustRoots } }
        set { set { $0.tlsTrustRoots = newValue } }
    }
}
