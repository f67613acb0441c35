// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import LoadingModel

extension URLSessionConfiguration {
    /// Whether the session enforces HTTP Strict Transport Security (RFC 6797), for hosts that request it and for preloaded
    /// top-level domains.
    ///
    /// Default true.
    ///
    /// Requests for `http` URLs of such hosts are sent over `https` only. The upgrade to `https` is a transaction in the metrics,
    /// although it uses no network. The hosts' policies are stored in the program's data directory; an ephemeral session keeps
    /// them in memory.
    ///
    /// Not in Apple's API, where HSTS cannot be disabled.
    public var usesHTTPStrictTransportSecurity: Bool {
        get { get { $0.policy.usesStrictTransportSecurity } }
        set { set { $0.policy.usesStrictTransportSecurity = newValue } }
    }

    /// Whether a Negotiate challenge is answered with the Kerberos ticket of the user who runs the process, without asking the
    /// delegate; default true.
    ///
    /// Set it to false if the app decides which user to authenticate as: then credentials come only from the URL's user info, the
    /// credential storage and the delegate.
    ///
    /// Not in Apple's API, where the use of tickets cannot be disabled.
    public var usesKerberosTickets: Bool {
        get { get { $0.policy.usesKerberosTickets } }
        set { set { $0.policy.usesKerberosTickets = newValue } }
    }

    /// Whether the session fetches intermediate certificates that a server should have sent, but did not; default true.
    ///
    /// A certificate names the URL of its issuer's certificate (Authority Information Access; RFC 5280, section 4.2.2.1). If a chain
    /// lacks an issuer, the session fetches it from there: over `http` on port 80, through the session's proxy if there is one,
    /// without cookies, credentials, header fields of the session, and redirects, and never from an address of a private network
    /// or of this machine, unless the server itself is there. One handshake makes at most three fetches of 64 KiB, and waits five
    /// seconds for them. The completed chain has to end in a trusted root like any other.
    ///
    /// Nothing is fetched if ``tlsTrustRoots`` is set or the delegate itself trusts the server.
    /// ``URLSessionTaskTransactionMetrics/intermediateCertificateURLs`` reports what was fetched.
    ///
    /// Not in Apple's API, where this cannot be disabled for a session.
    public var fetchesIntermediateCertificates: Bool {
        get { get { $0.policy.fetchesIssuers } }
        set { set { $0.policy.fetchesIssuers = newValue } }
    }

    /// The `NSAppTransportSecurity` dictionary of the session.
    ///
    /// Default nil: the session uses the dictionary in the `Info.plist` of the program's bundle, or in an `Info.plist` beside the
    /// executable. Without such a dictionary, the defaults apply: HTTPS is required, with TLS 1.2 and forward secrecy.
    ///
    /// IP addresses, names without a dot, and `.local` names are exempt. A load that is refused fails with
    /// `URLError.appTransportSecurityRequiresSecureConnection` and a message that names the key that would allow the load. The
    /// environment variable `NSAllowsArbitraryLoads=YES` has the effect of the key `NSAllowsArbitraryLoads` for the whole process,
    /// but it does not affect configurations that set their own dictionary here.
    ///
    /// Not in Apple's API, where only the `Info.plist` applies.
    public var appTransportSecurity: [String: Any]? {
        get { snapshot.transportSecurity?.values }
        set {
            let dictionary = newValue.map { TransportSecurityDictionary($0) }
            set { $0.transportSecurity = dictionary }
        }
    }

    /// The trusted root certificates for servers; each item is DER, or PEM with any number of certificates.
    ///
    /// Default empty: the session trusts the system's roots, or those in the file that the environment variable `SSL_CERT_FILE`
    /// names.
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
