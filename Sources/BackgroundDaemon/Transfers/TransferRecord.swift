//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundProtocol
import FoundationEssentials
import LoadingModel

/// What is durable of a transfer beside its order: everything that scheduling, listing and going on need to know.
///
/// It is in clear on the disk, so it has no header fields, queries or passwords.
struct TransferRecord: Codable, Sendable {
    typealias FileVersion = LoadingModel.FileVersion

    struct End: Codable, Sendable {
        /// The file in the session's spool that waits for the program.
        var file: String?
        var version: FileVersion?
        /// Bytes that it moved in the end.
        var sent: Int64?
        var received: Int64?
    }

    /// Without user, password and query.
    var url = ""
    var host = ""
    /// Nil for the scheme's own, and in rows of versions that did not keep it.
    var port: Int?
    var isUpload = false
    /// It leads to the machine itself.
    var isLocal = false
    var hostLimit = 6
    var priority: Float = 0.5
    var isDiscretionary = false
    var earliestBegin: Double?
    /// Seconds since the reference date.
    var created = 0.0
    var deadline = 0.0
    var asksBeforeBegin = false
    /// Held back by the program.
    var isSuspended = false
    /// Held back by the user.
    var isPaused = false
    /// Attempts in a row that made no progress, and before when there is no other one.
    var attempts = 0
    var notBefore: Double?
    /// Answers of the server's that ask to come again later, and others that may be better the next time.
    var refusals = 0
    var notes: Notes
    var uploadFile: FileVersion?
    /// The unfinished file in the session's spool, which the resume data names.
    var partial: String?
    /// So much of it was on the disk for certain, when the machine had this boot id.
    var syncedBytes: Int64 = 0
    var bootID = ""
    var end: End?
    /// Somebody gave it up, and it has not ended yet.
    var givenUp: TransferLife.GivenUp?

    struct Notes: Codable, Sendable {
        var description: String?
        var expectedToSend: Int64 = -1
        var expectedToReceive: Int64 = -1

        init(_ notes: BackgroundOrder.Notes) {
            description = notes.description
            expectedToSend = notes.expectedToSend
            expectedToReceive = notes.expectedToReceive
        }

        var notes: BackgroundOrder.Notes {
            var notes = BackgroundOrder.Notes()
            notes.description = description
            notes.expectedToSend = expectedToSend
            notes.expectedToReceive = expectedToReceive
            return notes
        }
    }

    /// Of a task of which nothing is known any more.
    init() { notes = Notes(BackgroundOrder.Notes()) }

    init(_ order: BackgroundOrder, _ settings: BackgroundSettings) {
        let url = order.task.request.url
        self.url = Self.shown(url)
        host = (url?.host() ?? "").lowercased()
        port = url?.port
        isLocal = ["localhost", "127.0.0.1", "::1", "[::1]"].contains(host) || host.hasPrefix("127.")
        if case .download = order.task.delivery { isUpload = false } else { isUpload = true }
        hostLimit = settings.policy.maximumConnectionsPerHost
        priority = order.task.priority
        isDiscretionary = order.isDiscretionary || settings.isDiscretionary
        earliestBegin = order.task.earliestBegin
        created = order.created
        let timeout = settings.policy.resourceTimeout
        deadline = timeout > 0 ? order.created + timeout : 1e15
        asksBeforeBegin = order.task.earliestBegin != nil && order.task.interests.contains(.delayedRequests)
        notes = Notes(order.notes)
    }

    /// What answers or does not, as far as the daemon can tell.
    var origin: String { port.map { "\(host):\($0)" } ?? (url.hasPrefix("http:") ? host + ":80" : host) }

    var isHeld: Bool { isSuspended || isPaused }

    /// A URL as people may see it.
    static func shown(_ url: URL?) -> String {
        guard let url, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return url?.host() ?? "" }
        parts.user = nil
        parts.password = nil
        parts.query = nil
        parts.fragment = nil
        return parts.string ?? ""
    }

    var encoded: [UInt8] { (try? JSONEncoder().encode(self)).map { Array($0) } ?? [] }

    static func decoded(_ bytes: [UInt8]) -> TransferRecord? {
        guard var record = try? JSONDecoder().decode(Self.self, from: Data(bytes)) else { return nil }
        // A count that is less than nothing cannot be counted on from.
        record.syncedBytes = max(0, record.syncedBytes)
        return record
    }
}

/// What is durable of a session beside its settings.
struct SessionRecord: Codable, Sendable {
    var lastTask = 0
    /// The program gave the session up; it is forgotten with its last task.
    var isInvalidated = false
    /// The user ended the program by force, and it is not started before the user does.
    var wasQuit = false
    /// Which process ends with that: one that comes again is ended by the next daemon.
    var doomed: String?
    var launches = LaunchLimit()

    var encoded: [UInt8] { (try? JSONEncoder().encode(self)).map { Array($0) } ?? [] }

    static func decoded(_ bytes: [UInt8]) -> SessionRecord? { try? JSONDecoder().decode(Self.self, from: Data(bytes)) }
}
