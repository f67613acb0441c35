// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The settings that all tasks of a session share, fixed when the session is created.
///
/// A setting that is a plain value and that the daemon needs too is declared here alone, with its default, and is listed in
/// ``plainFields``.
package struct SessionPolicy: Sendable {
    package var requestTimeout: Double = 60
    package var resourceTimeout: Double = 604_800
    package var maximumConnectionsPerHost = 6
    /// Fields added to each request that does not have them: the configuration's and the session's defaults.
    package var additionalHeaders: [(name: String, value: String)] = []
    /// The names of default fields that the session does not add; they are sent only if the app sets them.
    package var omittedHeaders: [String] = []
    package var cachePolicy: LoadRequest.CachePolicy = .useProtocolCachePolicy
    package var cookieAcceptance: CookieAcceptance = .onlyFromMainDocumentDomain
    /// Whether requests carry cookies of the session's storage and responses' cookies are stored there.
    package var usesCookies = true
    /// The size in bytes of the largest body that the app's own cache accepts.
    package var cachedBodyLimit: Int64 = 0
    /// Whether HSTS is enforced (RFC 6797).
    package var usesStrictTransportSecurity = true
    /// Whether Negotiate challenges are answered with the Kerberos ticket of the process's user before the app is asked.
    package var usesKerberosTickets = true
    /// Whether `ftp` URLs require TLS (RFC 4217).
    package var requiresSecureFTP = false
    /// Whether uploads offer to be resumable.
    package var usesResumableUploads = true
    /// When loads are retried; nil if the app did not configure retries.
    package var retries: LoadRetries?
    /// Whether uploads to FTP servers skip the part of the file that the server already has.
    package var resumesFTPUploads = false
    /// The lowest and highest TLS version as on the wire (0x0303 is TLS 1.2); nil means the transport's default.
    package var minimumTLSVersion: UInt16?
    package var maximumTLSVersion: UInt16?
    /// The trust roots to use instead of the system's: DER certificates.
    ///
    /// If empty, the system's roots are used.
    package var trustRoots: [Data] = []
    /// Whether ``trustRoots`` are the system's roots as another process sees them.
    package var trustRootsAreTheSystems = false
    /// Whether certificates of issuers that a server does not send are fetched from where its certificate says.
    package var fetchesIssuers = true
    /// The app's overrides for connections; nil if connections follow the URLs and the system's routing.
    package var connections: ConnectionOptions?
    /// The default connection needs of requests.
    package var needs = ConnectionNeeds.none
    /// Whether connections use multipath TCP if kernel and server support it.
    package var usesMultipath = false
    /// Whether a load waits for a network if none is available.
    package var waitsForConnectivity = false
    /// The maximum body length for `.collect`, beyond which the load fails with `dataLengthExceedsMaximum`; nil means no limit.
    package var maximumCollectedBytes: Int64?
    /// The maximum ratio of decoded to coded length, enforced beyond 64 MiB; the load fails if it is exceeded.
    package var maximumDecodingRatio: Int64 = 200
    /// The directory for downloaded files until the app moves them.
    package var temporaryDirectory: String = "/tmp"
    #if Logging || Metrics || Tracing
    /// Observes the session's connections.
    package var connectionObserver: (any ConnectionObserver)?
    #endif

    package init() {}

    /// Whether the session has trust roots that are not the system's.
    package var hasOwnTrustRoots: Bool { !trustRoots.isEmpty && !trustRootsAreTheSystems }

    /// The kinds of settings that are plain values, with the limits that the daemon checks.
    package enum PlainField {
        case flag(WritableKeyPath<SessionPolicy, Bool>)
        /// A number that is at least 1.
        case number(WritableKeyPath<SessionPolicy, Int64>, named: String)
        /// A number that is at least 0; nil if there is no limit.
        case limit(WritableKeyPath<SessionPolicy, Int64?>)
        case path(WritableKeyPath<SessionPolicy, String>, named: String)
    }

    /// The plain values that are sent to the daemon, each with its number and name in messages, in the order of their numbers.
    ///
    /// A new one gets the next number. Numbers up to 16 belong to other settings (`Settings+Fields.swift`).
    package static var plainFields: [(number: UInt8, name: StaticString, field: PlainField)] {
        [
            (17, "usesMultipath", .flag(\.usesMultipath)),
            (18, "waitsForConnectivity", .flag(\.waitsForConnectivity)),
            (19, "maximumCollectedBytes", .limit(\.maximumCollectedBytes)),
            (20, "maximumDecodingRatio", .number(\.maximumDecodingRatio, named: "a session's maximum decoding ratio")),
            (21, "temporaryDirectory", .path(\.temporaryDirectory, named: "the directory for downloads")),
            (22, "usesResumableUploads", .flag(\.usesResumableUploads)),
            (23, "fetchesIssuers", .flag(\.fetchesIssuers)),
            (24, "trustRootsAreTheSystems", .flag(\.trustRootsAreTheSystems)),
        ]
    }

    /// Raw values as in `HTTPCookie.AcceptPolicy`.
    package enum CookieAcceptance: UInt, Sendable {
        case always = 0
        case never = 1
        case onlyFromMainDocumentDomain = 2
    }
}
