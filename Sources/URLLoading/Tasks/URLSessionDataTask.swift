// SPDX-License-Identifier: Apache-2.0

/// A task that delivers the response body in memory: to the delegate in chunks, or to a completion handler or caller as a whole.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {}
