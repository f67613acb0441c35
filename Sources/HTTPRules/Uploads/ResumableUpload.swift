// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import HTTPWire

/// The state machine of a resumable upload (draft-ietf-httpbis-resumable-upload): it decides what to send after each event.
///
/// Offsets refer to the whole body. `given` counts the content bytes of the current request that were handed to the network.
package struct ResumableUpload: Sendable {
    enum Stage: Hashable, Sendable {
        case creating(Part)
        /// The server is asked for its limits, because it rejected the first request, whose content is this part, as too large.
        case discovering(Part)
        case retrieving
        case appending(Part)
        case over
    }

    /// The maximum number of consecutive attempts without progress on the server.
    package static let maximumAttemptsWithoutProgress = 6
    /// The maximum delay that a server can request, in seconds.
    private static let longestPause = 30.0

    /// The length of the whole body in bytes; nil if unknown.
    package internal(set) var length: Int64?
    package internal(set) var version: UploadVersion
    /// The upload resource; nil until the server has sent its location.
    package private(set) var resource: URL?
    package internal(set) var limits = UploadLimits()
    /// The time when the server discards the upload, in seconds since the reference date.
    package private(set) var expiry: Double?
    /// The number of bytes that the server has acknowledged.
    package private(set) var acknowledged: Int64 = 0
    /// The highest offset up to which the body has ever been handed to the network.
    package private(set) var sent: Int64 = 0
    var stage: Stage
    private var attemptsWithoutProgress = 0
    /// The server's offset when it was last retrieved.
    private var lastOffset: Int64 = -1
    /// Whether a response is kept while the offset is retrieved.
    var keepsResponse = false
    /// Whether the version has already been changed at the server's request.
    private var hasChangedVersion = false
    /// Whether the server has been asked for its limits.
    var hasDiscovered = false
    /// Whether the upload is sent in parts, so that the first request need not be interrupted again.
    var isInParts = false

    /// Starts a new upload.
    package init(length: Int64?, version: UploadVersion = .newest) {
        self.length = length
        self.version = version
        stage = .creating(Part())
    }

    /// Continues the upload of an earlier load.
    package init(continuing point: UploadPoint) {
        length = point.length
        version = point.version
        resource = point.resource
        limits = point.limits
        expiry = point.expiry
        acknowledged = point.acknowledged
        sent = point.length ?? .max  // The earlier load may have sent more than the server acknowledged.
        stage = .retrieving
    }

    /// The content of the current request; nil if it has none.
    package var part: Part? {
        switch stage {
        case .creating(let part), .appending(let part): part
        case .discovering, .retrieving, .over: nil
        }
    }

    package var isCreating: Bool { if case .creating = stage { true } else { false } }
    package var isOver: Bool { stage == .over }
    /// Whether a later load can continue the upload.
    package func canContinue(now: Double) -> Bool {
        resource != nil && stage != .over && expiry.map { now < $0 } ?? true
    }

    /// The upload fields of the current request.
    package var fields: [(String, String)] {
        switch stage {
        case .creating(let part): version.creationFields(isLast: part.isLast, length: length)
        case .appending(let part): version.appendingFields(offset: part.offset, isLast: part.isLast)
        case .discovering, .retrieving, .over: version.controlFields
        }
    }

    /// The method of the current request; nil for the app's method.
    package var method: String? {
        switch stage {
        case .creating, .over: nil
        case .discovering: "OPTIONS"
        case .retrieving: "HEAD"
        case .appending: "PATCH"
        }
    }

    /// Ends the upload.
    package mutating func end() { stage = .over }

    /// Records that the first request is about to be sent, possibly again.
    package mutating func beginCreation(length: Int64?) {
        guard isCreating else { return }
        self.length = length
        (resource, expiry, acknowledged, sent) = (nil, nil, 0, 0)
    }

    /// Records that the body was handed to the network up to this offset.
    package mutating func didSend(upTo end: Int64) { sent = max(sent, end) }

    // MARK: Interim responses

    /// Processes a 104 response; returns the step that replaces the current request, or nil if the request continues.
    package mutating func handleInterim(_ head: ResponseHead, from url: URL, given: Int64, now: Double) -> Step? {
        guard head.status == 104, let part else { return nil }
        note(given)
        let reply = UploadResponseFields(head.headers)
        if isCreating, resource == nil {
            guard adopt(reply.version), let location = Self.location(head, from: url) else { return nil }
            resource = location
        }
        guard resource != nil else { return nil }
        take(reply.limits, now: now)
        if let offset = reply.offset, let failure = acceptOffset(offset) { return fail(failure) }
        if let failure = limitViolation { return fail(failure) }
        // Interrupt the first request if its content exceeds the server's limit per request, as far as both are known.
        guard isCreating, !isInParts, let most = maximumPartSize, part.count ?? length ?? given > most else {
            return nil
        }
        isInParts = true
        return retrieve(after: 0)
    }

    // MARK: Responses

    /// Processes the final response to the current request.
    ///
    /// - Parameters:
    ///   - head: The head of the response.
    ///   - url: The URL of the request.
    ///   - given: The number of content bytes that were handed to the network.
    ///   - problem: The problem type in the content (RFC 9457); nil if there is none.
    ///   - now: The current time, in seconds since the reference date.
    /// - Returns: The next step.
    package mutating func answered(
        _ head: ResponseHead, from url: URL, given: Int64, problem: String? = nil, now: Double
    ) -> Step {
        note(given)
        let reply = UploadResponseFields(head.headers)
        switch stage {
        case .creating(let part): return created(part, head, reply, from: url, given: given, now: now)
        case .discovering(let part): return discovered(part, head, reply, now: now)
        case .retrieving: return retrieved(head, reply, at: url, now: now)
        case .appending(let part): return appended(part, head, reply, problem, at: url, given: given, now: now)
        case .over: return .deliver
        }
    }

    private mutating func created(
        _ part: Part, _ head: ResponseHead, _ reply: UploadResponseFields, from url: URL, given: Int64, now: Double
    ) -> Step {
        if head.status == 400, resource == nil, let number = reply.version, number != version.rawValue, !hasChangedVersion,
            let other = UploadVersion(rawValue: number)
        {
            (version, hasChangedVersion) = (other, true)
            return .create(part)
        }
        let isContinuable = 200...299 ~= head.status && (reply.isComplete == false || !part.isLast)
        if resource == nil, isContinuable || head.status == 413, adopt(reply.version) {
            resource = Self.location(head, from: url)
        }
        if reply.limits != nil { take(reply.limits, now: now) }
        switch head.status {
        case 200...299 where !isContinuable: return deliver()
        case 200...299:
            guard resource != nil else {
                return fail(
                    .contradiction("the server has a part of the upload, but sent no valid Location to continue it"))
            }
            if let offset = reply.offset, let failure = acceptOffset(offset) { return fail(failure) }
            if let failure = limitViolation { return fail(failure) }
            // The server has received the whole part, unless it states another offset.
            if !part.isLast, let end = end(of: part), (reply.offset ?? min(part.offset + given, end)) == end {
                return append(from: end)
            }
            return retrieve(after: 0)
        case 413 where maximumPartSize != nil || reply.limits != nil:
            if let failure = limitViolation { return fail(failure) }
            return createSmaller(than: part) ?? deliver()
        case 413 where !hasDiscovered:
            hasDiscovered = true
            stage = .discovering(part)
            keepsResponse = true
            return .discover
        case 500...599 where resource != nil && reply.isComplete != true:
            return retrieveKeepingResponse(head, now: now)
        default: return deliver()
        }
    }

    private mutating func retrieved(_ head: ResponseHead, _ reply: UploadResponseFields, at url: URL, now: Double) -> Step {
        // The request may have been redirected.
        resource = url
        switch head.status {
        case 200...299: break
        case 409, 423, 425, 429, 500...599:
            guard countAttemptWithoutProgress() else { return unanswered(head.status) }
            return retrieve(after: pause(head, now: now), keepsResponse: keepsResponse)
        // The server still has the upload; not even a response that was kept says that it is complete.
        case 401, 407: return .fail(.unauthorized(status: head.status))
        default: return keepsResponse ? deliverKept() : fail(.gone(status: head.status))
        }
        take(reply.limits, now: now)
        guard let offset = reply.offset else {
            return fail(.contradiction("the server did not say how much of the upload it has (Upload-Offset)"))
        }
        if let failure = acceptOffset(offset) { return fail(failure) }
        if let stated = reply.length, let length, stated != length {
            return fail(.contradiction("the server expects \(stated) bytes, but the upload has \(length)"))
        }
        if let failure = limitViolation { return fail(failure) }
        if reply.isComplete == true {
            guard length.map({ $0 == offset }) ?? true else {
                return fail(.contradiction("the server considers the upload complete with \(offset) of \(length ?? 0) bytes"))
            }
            return keepsResponse ? deliverKept() : deliver()
        }
        attemptsWithoutProgress = offset > lastOffset ? 0 : attemptsWithoutProgress
        lastOffset = offset
        guard attemptsWithoutProgress < Self.maximumAttemptsWithoutProgress else { return unanswered(head.status) }
        keepsResponse = false
        return append(from: offset)
    }

    private mutating func appended(
        _ part: Part, _ head: ResponseHead, _ reply: UploadResponseFields, _ problem: String?, at url: URL, given: Int64,
        now: Double
    ) -> Step {
        resource = url
        take(reply.limits, now: now)
        if reply.isComplete == true {
            return part.isLast ? deliver() : fail(.contradiction("the server considers the upload complete before its end"))
        }
        switch head.status {
        case 200...299:
            if let failure = limitViolation { return fail(failure) }
            if part.isLast, reply.isComplete == nil { return deliver() }
            if let offset = reply.offset, let failure = acceptOffset(offset) { return fail(failure) }
            guard !part.isLast, let end = end(of: part), (reply.offset ?? min(part.offset + given, end)) == end else {
                return countAttemptWithoutProgress() ? retrieve(after: pause(head, now: now)) : unanswered(head.status)
            }
            acknowledged = max(acknowledged, end)
            attemptsWithoutProgress = 0
            return append(from: end)
        case 409: return countAttemptWithoutProgress() ? retrieve(after: pause(head, now: now)) : deliver()
        case 400...499 where Self.isOffsetProblem(problem): return countAttemptWithoutProgress() ? retrieve(after: 0) : deliver()
        case 413 where limits.maximumAppendSize.map { most in part.count.map { $0 > most } ?? true } ?? false:
            return countAttemptWithoutProgress() ? retrieve(after: 0) : deliver()
        case 500...599: return retrieveKeepingResponse(head, now: now)
        default: return deliver()
        }
    }

    /// Whether the offset must be retrieved again after a problem of this type (draft 12, section 7).
    private static func isOffsetProblem(_ problem: String?) -> Bool {
        guard let problem else { return false }
        return problem.hasSuffix("#mismatching-upload-offset") || problem.hasSuffix("#completed-upload")
    }

    // MARK: Failures

    /// Returns the step after a failure of the current request; nil if the load fails with the request's error.
    package mutating func lost(given: Int64, now: Double) -> Step? {
        note(given)
        if case .discovering = stage { return deliverKept() }
        guard canContinue(now: now), countAttemptWithoutProgress() else {
            if keepsResponse { return deliverKept() }
            return nil
        }
        return retrieve(after: Self.pause(before: attemptsWithoutProgress - 1), keepsResponse: keepsResponse)
    }

    /// Returns the state from which a later load can continue the upload; nil if the upload cannot be continued.
    package func point(now: Double) -> UploadPoint? {
        guard let resource, canContinue(now: now) else { return nil }
        return UploadPoint(
            resource: resource, version: version, length: length, acknowledged: acknowledged, limits: limits, expiry: expiry)
    }
}

// MARK: - Steps

extension ResumableUpload {
    mutating func deliver() -> Step {
        stage = .over
        return .deliver
    }

    mutating func deliverKept() -> Step {
        stage = .over
        return .deliverKept
    }

    mutating func fail(_ failure: Failure) -> Step {
        stage = .over
        return .fail(failure)
    }

    private mutating func unanswered(_ status: Int) -> Step {
        keepsResponse ? deliverKept() : .fail(.unanswered(status: status))
    }

    mutating func retrieve(after pause: Double, keepsResponse: Bool = false) -> Step {
        stage = .retrieving
        self.keepsResponse = keepsResponse
        return .retrieve(after: pause, keepsResponse: keepsResponse)
    }

    private mutating func retrieveKeepingResponse(_ head: ResponseHead, now: Double) -> Step {
        countAttemptWithoutProgress() ? retrieve(after: pause(head, now: now), keepsResponse: true) : deliver()
    }

    private mutating func append(from offset: Int64) -> Step {
        var part = Part(offset: offset)
        if let most = maximumPartSize, length.map({ $0 - offset > most }) ?? true {
            part = Part(offset: offset, count: most, isLast: false)
        }
        stage = .appending(part)
        return .append(part)
    }

    /// Counts an attempt and returns whether another one is allowed.
    private mutating func countAttemptWithoutProgress() -> Bool {
        attemptsWithoutProgress += 1
        return attemptsWithoutProgress <= Self.maximumAttemptsWithoutProgress
    }

    private func pause(_ head: ResponseHead, now: Double) -> Double {
        // `RetryAfter` expects the time since 1970.
        let since1970 = now + Date.timeIntervalBetween1970AndReferenceDate
        let asked = head.headers.first("Retry-After").flatMap { RetryAfter.seconds($0, now: since1970) } ?? 0
        return max(Self.pause(before: attemptsWithoutProgress), min(asked, Self.longestPause))
    }

    mutating func note(_ given: Int64) { if let part { sent = max(sent, part.offset + given) } }

    mutating func take(_ limits: UploadLimits?, now: Double) {
        self.limits = self.limits.updated(by: limits)
        if let age = limits?.maximumAge { expiry = now + Double(age) }
    }

    /// Switches to the server's version; returns false if it is not supported.
    mutating func adopt(_ number: Int?) -> Bool {
        guard let number else { return true }
        guard let stated = UploadVersion(rawValue: number) else { return false }
        version = stated
        return true
    }

    /// Why the server's limits do not allow the upload; nil if they do, or if the length is unknown.
    var limitViolation: Failure? {
        guard let length else { return nil }
        if let most = limits.maximumSize, length > most { return .tooLarge(limit: most) }
        if let least = limits.minimumSize, length < least { return .tooSmall(limit: least) }
        return nil
    }

    /// Accepts the server's offset, or returns why it is invalid.
    private mutating func acceptOffset(_ offset: Int64) -> Failure? {
        guard offset >= acknowledged else {
            return .contradiction("the server has \(offset) bytes of the upload, but acknowledged \(acknowledged) before")
        }
        guard offset <= sent, length.map({ offset <= $0 }) ?? true else {
            return .contradiction(
                "the server says that it has \(offset) bytes of the upload, but only \(min(sent, length ?? sent)) were sent")
        }
        acknowledged = offset
        return nil
    }

    /// Returns the URL in `Location`, resolved by the rules for redirects; nil if the URL must not be used.
    private static func location(_ head: ResponseHead, from url: URL) -> URL? {
        let decision = RedirectPolicy.decide(
            status: 307, location: head.headers.octetTexts(of: "Location").first, method: "PATCH", url: url, redirectsSoFar: 0)
        guard case .follow(let proposal) = decision, let origin = Origin(proposal.url) else { return nil }
        return origin.isSecure || url.scheme?.lowercased() != "https" ? proposal.url : nil
    }
}
