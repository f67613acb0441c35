// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPTransport
import HTTPWire
import LoadingModel

/// One round of a load: a request that is about to be sent.
///
/// The parts are values that name neither loads nor stages; the stage that a part is named after changes it.
final class Hop {
    let number: Int
    private(set) var request: LoadRequest
    var proxies = ProxyWays()
    // Unchecked because every hop reads or sets these members; their methods do not call back into the hop.
    @exclusivity(unchecked) var followUp = FollowUpState()
    @exclusivity(unchecked) var authentication = HopAuthentication()
    @exclusivity(unchecked) var preparation = PreparationState()
    @exclusivity(unchecked) var cache = CacheFinding()
    @exclusivity(unchecked) var network = NetworkState()
    /// The received `Set-Cookie` fields, for an app that stores the cookies itself.
    var cookiesForApp: [String] = []
    /// What the hop sends for the load's kind; nil if it sends the whole request.
    var errand: HopErrand?
    /// The app's new stream for the next attempt; nil to ask for one when it is needed.
    var nextStream: (any BodyStream)?

    /// Whether ``hasScheme(_:or:)`` has found that the URL's scheme starts with a letter other than d and f.
    private var hasOtherScheme = false
    /// The remaining stages, if the hop stopped at the first of them.
    private var place: LowerStages?
    /// The hop's result, if it was produced before the load had a task.
    private var outcome: Outcome?

    /// Indirect, because few hops have an outcome.
    indirect enum Outcome {
        case answer(Answer)
        case failure(LoadError)
    }

    init(number: Int, request: LoadRequest) {
        self.number = number
        self.request = request
    }

    /// Whether the scheme of the URL is `one` or `other`, which must both start with d or f.
    ///
    /// Called for every network request, and therefore fast: compares text, and remembers whether the scheme starts with another
    /// letter.
    func hasScheme(_ one: String, or other: String) -> Bool {
        guard !hasOtherScheme, let text = request.url?.absoluteString.utf8, let first = text.first else { return false }
        switch first | 0x20 {
        case UInt8(ascii: "d"), UInt8(ascii: "f"): break
        default:
            hasOtherScheme = true
            return false
        }
        let scheme = text.prefix { $0 != UInt8(ascii: ":") }.map(ASCII.lowercased)
        return scheme.elementsEqual(one.utf8) || scheme.elementsEqual(other.utf8)
    }

    /// Whether the hop goes to a resource of the load's kind instead of the URL of the app's request.
    var leavesRequest: Bool { errand?.leavesRequest ?? false }

    func stop(at place: LowerStages) { self.place = place }
    var isStopped: Bool { place != nil }

    /// Returns the stages at which the hop continues.
    ///
    /// The next call returns nil.
    func takePlace() -> LowerStages? {
        defer { place = nil }
        return place
    }

    /// Whether the body may have been sent before; if so, the app has to provide another stream.
    var isRepeated: Bool { number > 0 || network.wasSent }

    /// Makes the hop use a new connection.
    ///
    /// Idle connections are closed: they are as stale as the connection that the hop used.
    func abandonConnections(of pool: ConnectionPool) {
        network.needsNewConnection = true
        // The idle connections are closed now, because the holder of the next connection depends on which connections exist.
        if let route = authentication.route { pool.wentStale(route) }
    }

    func keep(_ outcome: Outcome) { self.outcome = outcome }

    /// Returns the result that the hop produced before the load had a task.
    ///
    /// The next call returns nil.
    func takeOutcome() -> Outcome? { outcome.take() }

    /// Replaces a file by its content, which is then the same in each request of the load.
    func replaceBody(by content: Data) { request.body = .data(content) }

    /// Changes the request to use TLS.
    func upgrade(to url: URL, mainDocumentURL: URL?) {
        var upgraded = request
        upgraded.url = url
        upgraded.mainDocumentURL = mainDocumentURL
        request = upgraded
    }
}
