// SPDX-License-Identifier: Apache-2.0

/// The orders for a worker, one line of JSON each.
package enum WorkerOrder: Codable, Sendable {
    /// `ports` maps ports to their replacements, if the session's connections are redirected.
    case makeSession(Int, SessionKind, ports: [Int: Int], roots: String)
    case makeBackgroundSession(String)
    case invalidate(Int, finishes: Bool)
    case load(LoadRequest)
    case resumeDownload(Int, of: Int, session: Int, way: Way)
    case cancelUpload(Int)
    case resumeUpload(Int, of: Int, session: Int)
    case suspend(Int)
    case resume(Int)
    case cancel(Int)
    /// Invalidates all sessions and reports what is still open.
    case leave
}

package struct LoadRequest: Codable, Sendable {
    package var load: Int
    /// The number of the session; -1 is the background session.
    package var session: Int
    package var url: String
    package var method = "GET"
    package var fields: [String: String] = [:]
    package var body: String?
    /// The length of generated content that is uploaded instead of the body.
    package var uploadLength: Int?
    package var way = Way.data
    package var policy = Policy.usual
    /// The delegate's answer to challenges.
    package var user: String?
    package var password: String?
    package var isKept = false
    package var hasOwnTrust = false
    /// The messages that the app sends over a WebSocket, beginning before it resumes the task.
    package var messages: [String] = []
    /// Whether a stream uses TLS, and whether from its first byte.
    package var isSecure = false
    package var startsInClear = false

    package init(load: Int, session: Int, url: String) {
        self.load = load
        self.session = session
        self.url = url
    }
}

/// The reports of a worker, one line of JSON each.
package struct WorkerReport: Codable, Sendable {
    package enum Kind: String, Codable, Sendable {
        case ready, session, begun, did, end, invalid, left
        /// A delegate call that no task should get.
        case stray
    }

    package var kind: Kind
    package var load: Int?
    package var session: Int?
    /// The identifier of the task that has begun.
    package var task: Int?
    package var status: Int?
    package var body: String?
    package var error: Int?
    package var message: String?
    /// The cookies in the session's store when the load began, and when its response was delivered.
    package var cookiesBefore: [String] = []
    package var cookies: [String] = []
    package var calls: [String] = []
    package var hasResumeData = false
    /// Whether a `URLProtocol` was given the stored response, and whether the shared cache has the response after the load.
    package var wasGiven: Bool?
    package var isCached: Bool?
    package var open: [String] = []

    package init(_ kind: Kind, load: Int? = nil, session: Int? = nil) {
        self.kind = kind
        self.load = load
        self.session = session
    }
}
