//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials

/// Names a task within its session; Apple's `taskIdentifier`.
package typealias TaskID = Int

/// What the app asked for: one task.
package struct TaskOrder: Sendable {
    /// What becomes of the response's body.
    package enum Delivery: Sendable {
        /// Collected in memory and handed over with the outcome: completion handlers and `data(for:)`.
        case collect
        /// The response is asked about, then data is told within the credit window: delegates and `bytes(for:)`.
        case stream
        /// Written to a temporary file. `resuming` is resume data from an earlier load.
        case download(resuming: Data?)
        /// The connection is taken over once the server has switched protocols, and messages are exchanged.
        case webSocket(WebSocketOrder)
        /// There is no request: bytes are read and written over a connection of the task's own.
        case byteStream(StreamOrder)
    }

    /// What the client wants to hear; what nobody hears is not told.
    package struct Interests: OptionSet, Sendable {
        package let rawValue: Int
        package init(rawValue: Int) { self.rawValue = rawValue }
        /// Ask `.redirect` before a redirect is followed; otherwise it is followed.
        package static let redirects = Interests(rawValue: 1 << 0)
        /// Tell `.sent` while the request's body goes out.
        package static let sentBytes = Interests(rawValue: 1 << 1)
        package static let informational = Interests(rawValue: 1 << 2)
        /// Ask `.challenge` before a 401 or 407 is delivered, and when a TLS handshake raises questions.
        package static let challenges = Interests(rawValue: 1 << 3)
        /// Ask `.customLoader` for the first request and after each redirect.
        package static let customLoaders = Interests(rawValue: 1 << 4)
        /// Ask `.delayedRequest` when `earliestBegin` is reached.
        package static let delayedRequests = Interests(rawValue: 1 << 5)
        /// Tell `.wrote` while bytes arrive that are not told as `.data`.
        package static let receivedBytes = Interests(rawValue: 1 << 6)
        /// Hand the timelines over with the outcome.
        package static let metrics = Interests(rawValue: 1 << 7)
        /// The app keeps the cookies: ask `.cookies` and `.storeCookies`.
        package static let cookies = Interests(rawValue: 1 << 8)
        /// The app has a cache of its own: ask `.cachedResponse` and `.storeCached`.
        package static let cache = Interests(rawValue: 1 << 9)
        /// Ask `.willCache` before a response is stored.
        package static let willCache = Interests(rawValue: 1 << 10)
        /// The app keeps the credentials: ask `.storedCredential` and `.storeCredential`.
        package static let credentials = Interests(rawValue: 1 << 11)
        /// Tell `.sentHead` of each request.
        package static let sentHeads = Interests(rawValue: 1 << 12)
        /// Tell `.resumable` when a download's file is begun, and keep what is there of it for want of space, too.
        package static let resumePoints = Interests(rawValue: 1 << 13)
        /// The same, and nothing else is kept for that than without it.
        package static let begunFiles = Interests(rawValue: 1 << 14)
        /// Send the request's own `Upgrade`: a delegate may make a byte stream of what the server switches to.
        package static let upgrades = Interests(rawValue: 1 << 15)
    }

    package var id: TaskID
    package var request: LoadRequest
    package var delivery: Delivery
    package var interests: Interests
    /// 0 to 1; Apple's `URLSessionTask.priority`.
    package var priority: Float
    /// Seconds since the reference date before which the load does not begin, or nil.
    package var earliestBegin: Double?
    /// Set where the task has a delegate of its own that judges servers: its connections are not other tasks'.
    package var connectionHolder: ConnectionHolder?
    /// What the file that is the request's body has to be, from its opening to the end; nil where it is taken as it is found.
    package var bodyFile: FileVersion?
    /// Set for uploads that continue where they are interrupted, where the server does its part.
    package var upload: UploadOrder?
    /// The load is for what says which proxies there are, and goes past them.
    package var isForProxies = false
    /// The load goes where a redirect of another one led: what its session has for the origin that the app chose stays there.
    package var leftOrigin = false
    /// The load tells a server that an upload was given up: it may outlive its session for a while.
    package var endsUpload = false
    #if Logging || Metrics || Tracing
    /// Hears of the requests that the load sends.
    package var observer: (any LoadObserver)?
    #endif

    package init(
        id: TaskID, request: LoadRequest, delivery: Delivery, interests: Interests = [], priority: Float = 0.5,
        earliestBegin: Double? = nil
    ) {
        self.id = id
        self.request = request
        self.delivery = delivery
        self.interests = interests
        self.priority = priority
        self.earliestBegin = earliestBegin
    }
}

/// How an upload is to be continued.
package final class UploadOrder: Sendable {
    /// Resume data of an earlier load, which this one continues.
    package let resuming: Data?

    package init(resuming: Data? = nil) { self.resuming = resuming }
}

/// What the app may say about a task after it was ordered.
package enum TaskCommand: Sendable {
    case suspend
    case resume
    case cancel
    /// Cancels a download; the outcome's error carries resume data where resuming is possible.
    case cancelProducingResumeData
    case setPriority(Float)
    /// Data that was told has been dealt with; opens the credit window by as many bytes.
    case consumed(bytes: Int)
    /// Somebody looks at the task's counts: tells what they are, and from now on what becomes of them.
    case tellCounts
    case webSocket(WebSocketCommand)
    case stream(StreamCommand)
}

/// What every task of a session has in common, fixed when the session is made.
package struct SessionPolicy: Sendable {
    package var requestTimeout: Double = 60
    package var resourceTimeout: Double = 604_800
    package var maximumConnectionsPerHost = 6
    /// Fields added to each request that does not have them: the configuration's and the defaults.
    package var additionalHeaders: [(name: String, value: String)] = []
    /// The names of default fields that requests have only where the app sets them.
    package var omittedHeaders: [String] = []
    package var cachePolicy: LoadRequest.CachePolicy = .useProtocolCachePolicy
    package var cookieAcceptance: CookieAcceptance = .onlyFromMainDocumentDomain
    /// Whether requests carry cookies of the session's storage, and responses' cookies are kept there.
    package var usesCookies = true
    /// The largest body that the app's own cache takes.
    package var cachedBodyLimit: Int64 = 0
    /// Whether hosts that asked for it are spoken to over TLS alone (RFC 6797).
    package var usesStrictTransportSecurity = true
    /// Whether Negotiate is answered with the Kerberos ticket of whoever runs the process, before anybody is asked.
    package var usesKerberosTickets = true
    /// Whether `ftp` URLs are loaded over TLS alone (RFC 4217).
    package var requiresSecureFTP = false
    /// Whether uploads say that they can be continued where they are interrupted.
    package var usesResumableUploads = true
    /// When loads are tried again because the app asked for it; nil where it did not.
    package var retries: LoadRetries?
    /// Whether uploads to FTP servers leave out what the server has of the file.
    package var resumesFTPUploads = false
    /// The lowest and highest TLS version as on the wire (0x0303 is TLS 1.2); nil is the transport's default.
    package var minimumTLSVersion: UInt16?
    package var maximumTLSVersion: UInt16?
    /// Trust roots to use in place of the system's: DER certificates.
    ///
    /// Empty means the system's.
    package var trustRoots: [Data] = []
    /// The trust roots are the system's as another process sees them.
    package var trustRootsAreTheSystems = false
    /// Nil where connections lead where the URLs say, from wherever the system thinks best.
    package var connections: ConnectionOptions?
    /// What every connection has to be like whose request says nothing.
    package var needs = ConnectionNeeds.none
    /// Whether connections are multipath TCP where kernel and server have it.
    package var usesMultipath = false
    /// Whether a load waits for a network where there is none.
    package var waitsForConnectivity = false
    /// The most that `.collect` keeps in memory before the load fails with `dataLengthExceedsMaximum`; nil means no limit.
    package var maximumCollectedBytes: Int64?
    /// How many times its coded length (beyond 64 MiB) a decoded body may grow before the load fails.
    package var maximumDecodingRatio: Int64 = 200
    /// Where downloads are written until the app takes them.
    package var temporaryDirectory: String = "/tmp"
    #if Logging || Metrics || Tracing
    /// Hears of the session's connections.
    package var connectionObserver: (any ConnectionObserver)?
    #endif

    package init() {}

    /// Whether the session trusts other roots than the system's.
    package var hasOwnTrustRoots: Bool { !trustRoots.isEmpty && !trustRootsAreTheSystems }

    /// Raw values as in `HTTPCookie.AcceptPolicy`.
    package enum CookieAcceptance: UInt, Sendable {
        case always = 0
        case never = 1
        case onlyFromMainDocumentDomain = 2
    }
}
