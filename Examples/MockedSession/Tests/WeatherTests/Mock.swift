// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// Responds to a session's requests with a function of the test.
///
/// A header field identifies the session, so that tests can run in parallel. Sendable because the mutex guards the only state.
final class Mock: URLProtocol, @unchecked Sendable {
    typealias Answer = @Sendable (URLRequest) throws -> (status: Int, body: String)

    private static let answers = Mutex<[String: Answer]>([:])

    /// Returns a session whose requests are all answered by the function.
    static func session(_ answer: @escaping Answer) -> URLSession {
        let name = UUID().uuidString
        answers.withLock { $0[name] = answer }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [Mock.self]
        configuration.httpAdditionalHeaders = ["X-Mock": name]
        return URLSession(configuration: configuration)
    }

    override class func canInit(with request: URLRequest) -> Bool { true }

    override func startLoading() {
        do {
            let name = request.value(forHTTPHeaderField: "X-Mock") ?? ""
            guard let answer = Self.answers.withLock({ $0[name] }), let url = request.url else { throw URLError(.unsupportedURL) }
            let (status, body) = try answer(request)
            guard let response = HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: nil) else {
                throw URLError(.badServerResponse)
            }
            client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
            client?.urlProtocol(self, didLoad: Data(body.utf8))
            client?.urlProtocolDidFinishLoading(self)
        } catch {
            client?.urlProtocol(self, didFailWithError: error)
        }
    }
}
