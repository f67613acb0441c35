// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPTransport
import HTTPWire

/// A request in the form in which it is sent.
///
/// Immutable: adding fields creates a new message.
final class PreparedMessage {
    let outgoing: OutgoingMessage
    let target: RequestTarget
    let route: Route
    #if Logging || Metrics || Tracing
    /// The fields without an observer's trace fields; nil if no observer added fields.
    private var unobserved: HeaderBlock?
    #endif

    init(_ outgoing: OutgoingMessage, target: RequestTarget, route: Route) {
        self.outgoing = outgoing
        self.target = target
        self.route = route
    }

    var head: RequestHead { outgoing.head }

    /// The fields by which a cache may select a stored response (`Vary`).
    ///
    /// An observer's trace fields differ in each request and are not among them.
    var ownHeaders: HeaderBlock {
        #if Logging || Metrics || Tracing
        if let unobserved { return unobserved }
        #endif
        return outgoing.head.headers
    }

    /// Returns the message with these fields, which replace those of the same name.
    func setting(_ fields: [(String, String)]) -> PreparedMessage {
        var outgoing = outgoing
        for (name, value) in fields { outgoing.head.headers.set(name, value) }
        return PreparedMessage(outgoing, target: target, route: route)
    }

    #if Logging || Metrics || Tracing
    /// Trace fields differ in each request, so they do not select a stored response.
    private static let traceFieldNames: Set<String> = ["traceparent", "tracestate"]

    /// Returns the message with an observer's fields.
    func carrying(_ fields: [(String, String)]) -> PreparedMessage {
        let message = setting(fields)
        var unobserved = head.headers
        // An observer's other fields may select a stored response, like the app's own fields.
        for (name, value) in fields where !Self.traceFieldNames.contains(name.lowercased()) { unobserved.set(name, value) }
        message.unobserved = unobserved
        return message
    }
    #endif
}
