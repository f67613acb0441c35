// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import FoundationEssentials
import LoadingModel

/// The durable state of a transfer besides its order: everything needed to schedule, list and resume the transfer.
///
/// The record is stored in clear text, so it contains no header fields, queries or passwords.
struct TransferRecord: Codable, Sendable {
    typealias FileVersion = LoadingModel.FileVersion

    struct End: Codable, Sendable {
        /// The file in the session's spool that waits for the program.
        var file: String?
        var version: FileVersion?
        /// The final byte counts.
        var sent: Int64?
        var received: Int64?
    }

    /// The URL without user, password and query.
    var url = ""
    var host = ""
    /// Nil for the scheme's default port, and in rows of versions that did not store the port.
    var port: Int?
    var isUpload = false
    /// Whether the transfer's host is this machine.
    var isLocal = false
    var hostLimit = 6
    var priority: Float = 0.5
    var isDiscretionary = false
    var earliestBegin: Double?
    /// Seconds since the reference date.
    var created = 0.0
    var deadline = 0.0
    var asksBeforeBegin = false
    /// Whether the program has suspended the transfer.
    var isSuspended = false
    /// Whether the user has paused the transfer.
    var isPaused = false
    /// The number of consecutive attempts without progress, and the earliest time of the next attempt.
    var attempts = 0
    var notBefore: Double?
    /// The number of responses that ask the client to retry later, plus failures that may be temporary.
    var refusals = 0
    var notes = BackgroundOrder.Notes()
    var uploadFile: FileVersion?
    /// The partial file in the session's spool, which the resume data name.
    var partial: String?
    /// The number of bytes that were synced during the boot with this ID.
    var syncedBytes: Int64 = 0
    var bootID = ""
    var end: End?
    /// Why the transfer was given up; nil if it was not given up.
    var givenUp: TransferMachine.GiveUpReason?
    /// True if the transfer's order was lost with a damaged list of transfers; otherwise nil.
    var isLost: Bool?

    /// The record of a task whose own record is lost.
    init() {}

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
        notes = order.notes
    }

    /// The host and port: transfers to the same origin wait together while the origin does not respond.
    var origin: String { port.map { "\(host):\($0)" } ?? (url.hasPrefix("http:") ? host + ":80" : host) }

    var isHeld: Bool { isSuspended || isPaused }

    /// Returns a URL for display: without user, password, query and fragment.
    static func shown(_ url: URL?) -> String {
        guard let url, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return url?.host() ?? "" }
        parts.user = nil
        parts.password = nil
        parts.query = nil
        parts.fragment = nil
        return parts.string ?? ""
    }

    var encoded: [UInt8] { (try? JSONEncoder().encode(self)).map { Array($0) } ?? [] }

    /// Returns nil if the bytes are damaged, also if a number is one that no daemon writes.
    static func decoded(_ bytes: [UInt8]) -> TransferRecord? {
        guard var record = try? JSONDecoder().decode(Self.self, from: Data(bytes)),
            0...Self.largestCount ~= record.attempts, 0...Self.largestCount ~= record.refusals
        else { return nil }
        // An order may have any dates; a pause has an end.
        record.deadline = min(max(record.deadline, -1e15), 1e15)
        record.created = min(max(record.created, -1e12), 1e12)
        if let pause = record.notBefore, abs(pause) > 1e12 { record.notBefore = nil }
        // A negative count cannot be used.
        record.syncedBytes = max(0, record.syncedBytes)
        record.hostLimit = max(1, record.hostLimit)
        record.priority = min(max(record.priority, 0), 1)
        return record
    }

    private static let largestCount = 1 << 30

    /// Returns the state, as stored, of a transfer whose order is lost; a transfer that has ended needs no order.
    static func lost(_ bytes: [UInt8]) -> [UInt8] {
        guard var record = decoded(bytes) else { return [] }
        guard record.end == nil else { return bytes }
        record.isLost = true
        return record.encoded
    }
}

/// The durable state of a session besides its settings.
struct SessionRecord: Codable, Sendable {
    var lastTask = 0
    /// Whether the program has invalidated the session; the session is removed with its last task.
    var isInvalidated = false
    /// Whether the user has force-quit the program; if so, only the user may start the program again.
    var wasQuit = false
    /// Identifies the process to be killed once the quit is durable; if this daemon ends first, the next one kills it on reconnection.
    var doomed: String?
    var launches = LaunchLimit()

    var encoded: [UInt8] { (try? JSONEncoder().encode(self)).map { Array($0) } ?? [] }

    static func decoded(_ bytes: [UInt8]) -> SessionRecord? {
        guard var record = try? JSONDecoder().decode(Self.self, from: Data(bytes)) else { return nil }
        record.launches.limitDelay()
        // A larger number is damage, and would leave too few for later tasks.
        if !(0...(1 << 52) ~= record.lastTask) { record.lastTask = 0 }
        return record
    }
}
