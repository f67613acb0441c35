//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// What a worker is told, one line of JSON each.
package enum WorkerOrder: Codable, Sendable {
    /// `ports`: which port stands in for which, where the session's connections are led elsewhere.
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
    /// Invalidates all sessions and says what is open then.
    case leave
}

package struct LoadRequest: Codable, Sendable {
    package var load: Int
    /// -1 for the background session.
    package var session: Int
    package var url: String
    package var method = "GET"
    package var fields: [String: String] = [:]
    package var body: String?
    /// What is uploaded in place of that, of this length.
    package var uploadLength: Int?
    package var way = Way.data
    package var policy = Policy.usual
    /// What the delegate answers challenges with.
    package var user: String?
    package var password: String?
    package var isKept = false
    package var hasOwnTrust = false
    /// What is sent over a WebSocket, from before it is resumed.
    package var messages: [String] = []
    /// Whether a stream is to be secured, and whether from its first byte.
    package var isSecure = false
    package var startsInClear = false

    package init(load: Int, session: Int, url: String) {
        self.load = load
        self.session = session
        self.url = url
    }
}

/// What a worker says, one line of JSON each.
package struct WorkerReport: Codable, Sendable {
    package enum Kind: String, Codable, Sendable {
        case ready, session, begun, did, end, invalid, left
        /// Something that no task may be told.
        case stray
    }

    package var kind: Kind
    package var load: Int?
    package var session: Int?
    package var status: Int?
    package var body: String?
    package var error: Int?
    package var message: String?
    /// The cookies that were in the session's store when the load began, and when its response was told.
    package var cookiesBefore: [String] = []
    package var cookies: [String] = []
    package var calls: [String] = []
    package var hasResumeData = false
    /// Whether a `URLProtocol` was given what is stored, and whether the shared cache has it afterwards.
    package var wasGiven: Bool?
    package var isCached: Bool?
    package var open: [String] = []

    package init(_ kind: Kind, load: Int? = nil, session: Int? = nil) {
        self.kind = kind
        self.load = load
        self.session = session
    }
}
