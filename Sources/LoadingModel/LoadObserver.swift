//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#if Logging || Metrics || Tracing
package import FoundationEssentials

/// Hears of the requests that one task sends over the network.
///
/// Its methods are called on the session's event loop: they must not block.
package protocol LoadObserver: AnyObject, Sendable {
    /// A request is about to be sent, once there is a connection for it.
    func begins(_ request: ObservedRequest) -> any RequestObserver
}

/// Hears of one request and its response.
package protocol RequestObserver: AnyObject {
    /// What the request is to say beside its own fields.
    var fields: [(String, String)] { get }
    /// The head of the final response is there.
    func answered(_ response: ObservedResponse)
    /// The request is over; told once.
    func ended(_ end: ObservedEnd)
}

/// Hears of the connections of a session that HTTP goes by.
///
/// Its methods are called on the session's event loop: they must not block.
package protocol ConnectionObserver: AnyObject, Sendable {
    func opened(_ connection: ObservedConnection)
    func closed(_ connection: ObservedConnection)
}

package struct ObservedConnection: Sendable {
    /// The server that it leads to, perhaps through a proxy.
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
    /// Why it is sent.
    package enum Cause: String, Sendable {
        /// It is the first of its task.
        case first
        /// A redirect led here.
        case redirect
        /// The one before was asked for a credential.
        case authentication
        /// The one before failed.
        case failure
        /// It continues an upload, or asks how much of it the server has.
        case resumption
        /// The one before was answered in a way that calls for another.
        case answer
    }

    package let task: TaskID
    package let method: String
    package let url: URL
    package let host: String
    package let port: Int
    /// How many requests the task has sent before.
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

/// What is known of a response, and of the connection that it came over.
package struct ObservedResponse {
    /// Nil before the head came.
    package let status: Int?
    /// The version of HTTP, as in "1.1" and "2"; nil where there was no connection.
    package let version: String?
    /// Nil where there was no connection.
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
    /// Why it failed; nil where it did not, whatever the status.
    package let failure: LoadError?
    /// Nanoseconds since it began.
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
