// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import LoadingModel
import LoadingStores

// The parts of a hop.

/// What has happened to a hop's attempts, and what its next attempt may send.
struct FollowUpState {
    /// Whether a redirect led away from the load's first origin, even if another redirect led back.
    ///
    /// Secrets for the first origin are then no longer sent. True from the beginning if the app did not choose that origin.
    let leftOrigin: Bool
    /// The number of attempts of this hop that failed since the last response.
    private(set) var failedAttempts = 0
    /// The number of attempts since the last response that the server refused without processing them.
    private var refusals = RefusalCount()
    /// The failure of the first attempt since the last response.
    private(set) var firstFailure: (any Error)?
    /// Whether the server refused `Expect: 100-continue`.
    var withoutExpectation = false
    /// Whether the request was repeated because a server that was reached over HTTP/3 is not configured for the origin.
    var leftAlternative = false

    init(leftOrigin: Bool = false) { self.leftOrigin = leftOrigin }

    /// Returns the refusals, including that of the current attempt.
    func refusals(with evidence: RetryEvidence) -> RefusalCount {
        var refusals = refusals
        if case .notProcessed(let refusal) = evidence { refusals.count(refusal) }
        return refusals
    }

    mutating func note(_ evidence: RetryEvidence, _ error: LoadError) {
        if firstFailure == nil { firstFailure = error }
        if case .notProcessed = evidence { refusals = refusals(with: evidence) } else { failedAttempts += 1 }
    }

    mutating func forgetFailures() {
        guard firstFailure != nil else { return }
        (failedAttempts, refusals, firstFailure) = (0, RefusalCount(), nil)
    }
}

/// How a hop is sent.
struct NetworkState {
    /// Whether the message was sent before, at least in part.
    var wasSent = false
    /// Whether the request expects a 100 (Continue) response.
    var askedToContinue = false
    /// Whether only a new connection may be used, because the last attempt failed on a reused one.
    var needsNewConnection = false
    /// The last chains that the load's delegate accepted, the newest last: other connections may have the same.
    ///
    /// There can be several, because the servers behind one name may have different certificates.
    var acceptedChains: [[Data]] = []
    /// Whether the hop's transaction has begun.
    var hasBegun = false
    /// Watches the proxy that the message was sent to, if there is another route.
    var silence: ProxySilence?

    /// Stops watching the proxy, because it responded or the load no longer waits for it.
    mutating func endSilence() {
        guard let silence else { return }
        silence.end()
        self.silence = nil
    }
}

/// The message of a hop, and what it is composed of.
struct PreparationState {
    /// The message, from its composition until it is sent.
    var message: PreparedMessage?
    /// The cookies of the app's own storage for this hop.
    var cookies: String?

    /// Adds fields to the message, replacing those of the same name.
    mutating func add(_ fields: [(String, String)]) { message = message?.setting(fields) }

    #if Logging || Metrics || Tracing
    /// Adds an observer's fields to the message.
    mutating func carry(_ fields: [(String, String)]) { message = message?.carrying(fields) }
    #endif

    /// Restores an earlier message, without fields that have been added since.
    mutating func restore(_ earlier: PreparedMessage?) { message = earlier }

    /// Releases the message, which is being sent or will not be sent.
    mutating func release() { message = nil }
}

/// What the cache has for a hop.
struct CacheFinding {
    /// The result of the lookup, and what to do with it.
    var found: CachedAnswer?
    /// Whether the cache may have a response for this hop.
    ///
    /// If the hop's new response is not stored, the cached response is outdated.
    var mayHaveStored = false
    /// The session's own cache, if the response was found there.
    var own: ResponseCache?
}

/// The result of a hop's cache lookup.
indirect enum CachedAnswer {
    /// The app keeps its own cache and has to be asked.
    case asksApp
    /// The disk has to be read.
    case pending(DiskLookUp)
    case decided(ResponseCache.Hit, CacheDecision)
}

/// The ways to a hop's server.
struct ProxyWays {
    /// The remaining ways to the server, the current one first.
    ///
    /// The ways are for one origin: a later upgrade to TLS needs a new choice.
    var ways: ArraySlice<ProxyWay> = []
    var origin: Origin?

    /// Whether there is another way if this one fails.
    var hasAlternatives: Bool { ways.count > 1 }
}

/// What a hop sends for the kind of its load, instead of the app's whole request.
///
/// Allocated separately, because few hops have one.
final class HopErrand {
    /// The part of the body that the hop sends; nil for the whole body.
    let part: ResumableUpload.Part?
    /// Whether the hop goes to a resource of the kind's own instead of the URL of the app's request.
    let leavesRequest: Bool
    let redirectCount: Int

    init(part: ResumableUpload.Part?, leavesRequest: Bool, redirectCount: Int = 0) {
        self.part = part
        self.leavesRequest = leavesRequest
        self.redirectCount = redirectCount
    }

    /// The same errand after another redirect.
    var redirected: HopErrand { HopErrand(part: part, leavesRequest: leavesRequest, redirectCount: redirectCount + 1) }
}
