// SPDX-License-Identifier: Apache-2.0

#if Logging || Metrics || Tracing
package import FoundationEssentials

/// Observes the requests that one task sends over the network.
///
/// Its methods are called on the session's event loop: they must not block.
package protocol LoadObserver: AnyObject, Sendable {
    /// Reports that a request will be sent as soon as it has a connection; returns the observer of that request.
    func willSend(_ request: ObservedRequest) -> any RequestObserver
}

/// Observes one request and its response.
package protocol RequestObserver: AnyObject {
    /// Header fields to add to the request.
    var fields: [(String, String)] { get }
    /// Reports the head of the final response.
    func answered(_ response: ObservedResponse)
    /// Reports the end of the request; called once.
    func ended(_ end: ObservedEnd)
}

/// Observes the HTTP connections of a session.
///
/// Its methods are called on the session's event loop: they must not block.
package protocol ConnectionObserver: AnyObject, Sendable {
    func opened(_ connection: ObservedConnection)
    func closed(_ connection: ObservedConnection)
}

package struct ObservedConnection: Sendable {
    /// The origin server, even if the connection leads through a proxy.
    package let host: String
    package let port: Int
    package let facts: ConnectionFacts

    package init(host: String, port: Int, facts: ConnectionFacts) {
        self.host = host
        self.port = port
        self.facts = facts
    }
}

/// A request as it is about to be sent.
package struct ObservedRequest {
    /// Why the request is sent.
    package enum Cause: String, Sendable {
        /// It is the task's first request.
        case first
        /// It follows a redirect.
        case redirect
        /// The previous request was challenged.
        case authentication
        /// The previous request failed.
        case failure
        /// It continues an upload or asks for the upload's offset.
        case resumption
        /// The previous response requires another request.
        case answer
    }

    package let task: TaskID
    package let method: String
    package let url: URL
    package let host: String
    package let port: Int
    /// The number of requests that the task has sent before.
    package let resendCount: Int
    package let cause: Cause
    /// Seconds since the reference date.
    package let begin: Double

    package init(
        task: TaskID, method: String, url: URL, host: String, port: Int, resendCount: Int, cause: Cause, begin: Double
    ) {
        self.task = task
        self.method = method
        self.url = url
        self.host = host
        self.port = port
        self.resendCount = resendCount
        self.cause = cause
        self.begin = begin
    }
}

/// The facts of a response and of its connection.
package struct ObservedResponse {
    /// The status; nil until the head arrives.
    package let status: Int?
    /// The HTTP version, such as "1.1" or "2"; nil if there was no connection.
    package let version: String?
    /// The facts of the connection; nil if there was no connection.
    package let connection: ConnectionFacts?

    package init(status: Int?, version: String?, connection: ConnectionFacts?) {
        self.status = status
        self.version = version
        self.connection = connection
    }
}

/// How a request ended.
package struct ObservedEnd {
    package let response: ObservedResponse
    /// The failure; nil if the request succeeded, whatever the status.
    package let failure: LoadError?
    /// Nanoseconds since the request began.
    package let duration: Int64
    package let sentBodyBytes: Int64
    package let receivedBodyBytes: Int64

    package init(
        response: ObservedResponse, failure: LoadError?, duration: Int64, sentBodyBytes: Int64, receivedBodyBytes: Int64
    ) {
        self.response = response
        self.failure = failure
        self.duration = duration
        self.sentBodyBytes = sentBodyBytes
        self.receivedBodyBytes = receivedBodyBytes
    }
}
#endif
