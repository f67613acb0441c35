// SPDX-License-Identifier: Apache-2.0

internal import LoadingModel

extension URLSessionConfiguration {
    /// The names of default header fields to omit from requests that do not set them; default empty.
    ///
    /// The defaults are `Accept`, `Accept-Encoding`, `Accept-Language`, `User-Agent`, and the `Content-Type` of a POST with a body.
    ///
    /// Not in Apple's API.
    public var omittedHeaders: Set<String> {
        get { Set(get { $0.policy.omittedHeaders }) }
        set { set { $0.policy.omittedHeaders = newValue.sorted() } }
    }
}
