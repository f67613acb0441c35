// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// A request's content, if it is not in the `URLRequest` itself.
enum RequestContent: Sendable {
    case none
    case form(FormBody)
    case upload(UploadSource)
    /// A body whose rate is limited by `--limit-rate`.
    case slow(Data, rate: Int64)

    /// Returns the content from its beginning; nil if there is no content, or it cannot be sent again.
    func stream(rate: Int64?) -> InputStream? {
        switch self {
        case .none: nil
        case .form(let form): rate.map { RateLimitedStream(form.stream(), RateLimiter($0)) } ?? form.stream()
        case .upload(let source): source.stream()
        case .slow(let data, let rate): RateLimitedStream(InputStream(data: data), RateLimiter(rate))
        }
    }

    func task(in session: URLSession, with request: URLRequest) -> URLSessionTask {
        switch self {
        case .none: session.dataTask(with: request)
        case .form, .slow: session.uploadTask(withStreamedRequest: request)
        case .upload(let source): source.task(in: session, with: request)
        }
    }

    /// Moves the body out of a request that is sent with a limited rate.
    mutating func slow(_ request: inout URLRequest, to rate: Int64?) {
        guard let rate, case .none = self, let body = request.httpBody, !body.isEmpty else { return }
        request.httpBody = nil
        if request.value(forHTTPHeaderField: "Content-Length") == nil {
            request.setValue("\(body.count)", forHTTPHeaderField: "Content-Length")
        }
        self = .slow(body, rate: rate)
    }
}
