// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// Identifies a task within its session; Apple's `taskIdentifier`.
package typealias TaskID = Int

/// The instruction to perform the load of one task.
package struct TaskOrder: Sendable {
    /// How the response body is delivered.
    package enum Delivery: Sendable {
        /// Collected in memory and delivered with the outcome: completion handlers and `data(for:)`.
        case collect
        /// The client is asked about the response, then receives data within the flow control window: delegates and
        /// `bytes(for:)`.
        case stream
        /// Written to a temporary file. `resuming` is resume data from an earlier load.
        case download(resuming: Data?)
        /// After the server has switched protocols, the connection carries WebSocket messages.
        case webSocket(WebSocketOrder)
        /// No HTTP request: bytes are read from and written to a connection that no other task uses.
        case byteStream(StreamOrder)
    }

    /// The events and questions that the client wants; the engine sends no others.
    package struct Interests: OptionSet, Sendable {
        package let rawValue: Int
        package init(rawValue: Int) { self.rawValue = rawValue }
        /// Ask `.redirect` before following a redirect; otherwise redirects are followed.
        package static let redirects = Interests(rawValue: 1 << 0)
        /// Send `.sent` while the request body is sent.
        package static let sentBytes = Interests(rawValue: 1 << 1)
        package static let informational = Interests(rawValue: 1 << 2)
        /// Ask `.challenge` before delivering a 401 or 407, and for server trust and client certificates in TLS handshakes.
        package static let challenges = Interests(rawValue: 1 << 3)
        /// Ask `.customLoader` for the first request and after each redirect.
        package static let customLoaders = Interests(rawValue: 1 << 4)
        /// Ask `.delayedRequest` when `earliestBegin` is reached.
        package static let delayedRequests = Interests(rawValue: 1 << 5)
        /// Send `.wrote` for received bytes that are not sent as `.data`.
        package static let receivedBytes = Interests(rawValue: 1 << 6)
        /// Deliver the timelines with the outcome.
        package static let metrics = Interests(rawValue: 1 << 7)
        /// The app stores the cookies: ask `.cookies` and `.storeCookies`.
        package static let cookies = Interests(rawValue: 1 << 8)
        /// The app has its own cache: ask `.cachedResponse` and `.storeCached`.
        package static let cache = Interests(rawValue: 1 << 9)
        /// Ask `.willCache` before storing a response.
        package static let willCache = Interests(rawValue: 1 << 10)
        /// The app stores the credentials: ask `.storedCredential` and `.storeCredential`.
        package static let credentials = Interests(rawValue: 1 << 11)
        /// Send `.sentHead` for each request.
        package static let sentHeads = Interests(rawValue: 1 << 12)
        /// Send `.resumable` when a download's file is created, and keep a partial file even if the disk is full.
        package static let resumePoints = Interests(rawValue: 1 << 13)
        /// Send `.resumable` when a download's file is created, but do not keep a partial file if the disk is full.
        package static let createdFiles = Interests(rawValue: 1 << 14)
        /// Send the request's own `Upgrade` field: a delegate may turn the switched connection into a byte stream.
        package static let upgrades = Interests(rawValue: 1 << 15)
    }

    package var id: TaskID
    package var request: LoadRequest
    package var delivery: Delivery
    package var interests: Interests
    /// From 0 to 1, like Apple's `URLSessionTask.priority`.
    package var priority: Float
    /// The time, in seconds since the reference date, before which the load does not begin; nil to begin at any time.
    package var earliestBegin: Double?
    /// Set if the task's own delegate judges servers: it stands for that delegate.
    package var connectionHolder: ConnectionHolder?
    /// The version that the body file must have while it is read; nil accepts any.
    package var bodyFile: FileVersion?
    /// Set for uploads that continue after an interruption, if the server supports resumable uploads.
    package var upload: UploadOrder?
    /// Whether the load fetches the proxy configuration, and therefore bypasses proxies.
    package var isForProxies = false
    /// Whether the load follows another load's redirect to a different origin, so that credentials and other data for the original
    /// origin are not sent.
    package var leftOrigin = false
    /// Whether the load tells a server that an upload was cancelled; such a load may outlive its session for a while.
    package var endsUpload = false
    #if Logging || Metrics || Tracing
    /// Observes the requests that the load sends.
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

/// How to continue an upload.
package final class UploadOrder: Sendable {
    /// Resume data of an earlier load, which this load continues.
    package let resuming: Data?
    /// Whether the upload of ``resuming`` has been given up: the load ends at once, as if it had begun and was then cancelled.
    package let isGivenUp: Bool

    package init(resuming: Data? = nil, isGivenUp: Bool = false) {
        self.resuming = resuming
        self.isGivenUp = isGivenUp
    }
}

/// The app's commands for a submitted task.
package enum TaskCommand: Sendable {
    case suspend
    case resume
    case cancel
    /// Cancels a download; the outcome's error carries resume data if the download can be resumed.
    case cancelProducingResumeData
    case setPriority(Float)
    /// The client has processed body data; opens the flow control window by this number of bytes.
    case consumed(bytes: Int)
    /// Reports the byte counts now and after every change, because the app reads the task's counts.
    case reportCounts
    case webSocket(WebSocketCommand)
    case stream(StreamCommand)
}
