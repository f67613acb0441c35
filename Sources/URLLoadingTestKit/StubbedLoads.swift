// SPDX-License-Identifier: Apache-2.0

public import Foundation
import Synchronization
public import URLLoading

/// Answers a request instead of a server.
///
/// The closure receives the request as the session would send it, with the complete body as `httpBody`. If it throws, the load
/// fails with that error. Each call runs in a Swift task of its own, which is cancelled when the load is cancelled.
public typealias StubbedAnswer = @Sendable (_ request: URLRequest) async throws -> (HTTPURLResponse, Data)

extension URLSessionConfiguration {
    /// The header field that connects a configuration's sessions to their closure; removed before the closure is called.
    static let stubField = "X-URLLoading-Stub"

    /// Returns a configuration whose sessions call a closure instead of using the network.
    ///
    /// ```swift
    /// let session = URLSession(configuration: .stubbed { request in
    ///     (try HTTPURLResponse.stub(for: request, status: 404), Data("none".utf8))
    /// })
    /// ```
    ///
    /// Each configuration has its own closure, so that tests can run concurrently. Cookies and responses are not stored.
    ///
    /// - Parameter answer: Answers each http and https request, including redirects.
    /// - Returns: A configuration like `.ephemeral`.
    public static func stubbed(by answer: @escaping StubbedAnswer) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.stub(by: answer)
        return configuration
    }

    /// Makes the sessions of this configuration call a closure instead of using the network.
    ///
    /// The closure is kept for the lifetime of the process. Other `URLProtocol` classes of the configuration are not used. The
    /// closure is found by a field in ``URLSessionConfiguration/httpAdditionalHeaders``: set other fields before this call, or add
    /// them to the dictionary. Requests other than http and https fail with `URLError.unsupportedURL`.
    ///
    /// - Parameter answer: Answers each http and https request.
    public func stub(by answer: @escaping StubbedAnswer) {
        let name = UUID().uuidString
        StubbedLoad.answers.withLock { $0[name] = answer }
        protocolClasses = [StubbedLoad.self] + (protocolClasses ?? [])
        httpAdditionalHeaders = (httpAdditionalHeaders ?? [:]).merging([Self.stubField: name]) { $1 }
    }
}

extension HTTPURLResponse {
    /// Creates a response to a request, for a ``StubbedAnswer``.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - status: The status.
    ///   - fields: The header fields.
    /// - Throws: `URLError.badServerResponse` if the request has no URL.
    /// - Returns: The response.
    public static func stub(for request: URLRequest, status: Int = 200, fields: [String: String] = [:]) throws -> HTTPURLResponse
    {
        guard let url = request.url,
            let response = HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields)
        else { throw URLError(.badServerResponse) }
        return response
    }
}

/// A load that is answered by a closure.
///
/// Sendable because a mutex guards its own state.
final class StubbedLoad: URLProtocol, @unchecked Sendable {
    static let answers = Mutex<[String: StubbedAnswer]>([:])

    private let work = Mutex<Task<Void, Never>?>(nil)

    override class func canInit(with request: URLRequest) -> Bool {
        request.value(forHTTPHeaderField: URLSessionConfiguration.stubField) != nil
    }

    override func startLoading() {
        var plain = request
        let name = plain.value(forHTTPHeaderField: URLSessionConfiguration.stubField) ?? ""
        plain.setValue(nil, forHTTPHeaderField: URLSessionConfiguration.stubField)
        if plain.httpBody == nil, let stream = plain.httpBodyStream { plain.httpBody = Self.data(of: stream) }
        guard ["http", "https"].contains(plain.url?.scheme?.lowercased()), let answer = Self.answers.withLock({ $0[name] }) else {
            client?.urlProtocol(self, didFailWithError: URLError(.unsupportedURL))
            return
        }
        work.withLock { work in
            work = Task { [plain] in
                do {
                    let (response, data) = try await answer(plain)
                    self.deliver(response, data, to: plain)
                } catch {
                    self.client?.urlProtocol(self, didFailWithError: error is CancellationError ? URLError(.cancelled) : error)
                }
            }
        }
    }

    override func stopLoading() { work.withLock { $0 }?.cancel() }

    private func deliver(_ response: HTTPURLResponse, _ data: Data, to request: URLRequest) {
        if let next = Self.redirect(response, of: request) {
            client?.urlProtocol(self, wasRedirectedTo: next, redirectResponse: response)
            return
        }
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: data)
        client?.urlProtocolDidFinishLoading(self)
    }

    /// Returns the request that follows a redirect (RFC 9110, section 15.4); nil if the response is not a redirect.
    private static func redirect(_ response: HTTPURLResponse, of request: URLRequest) -> URLRequest? {
        guard [301, 302, 303, 307, 308].contains(response.statusCode),
            let location = response.value(forHTTPHeaderField: "Location"),
            let url = URL(string: location, relativeTo: request.url)?.absoluteURL
        else { return nil }
        var next = request
        next.url = url
        let method = request.httpMethod ?? "GET"
        if response.statusCode == 303 && method != "HEAD" || response.statusCode < 303 && method == "POST" {
            next.httpMethod = "GET"
            next.httpBody = nil
            next.setValue(nil, forHTTPHeaderField: "Content-Type")
            next.setValue(nil, forHTTPHeaderField: "Content-Length")
        }
        next.setValue(nil, forHTTPHeaderField: "Proxy-Authorization")
        if origin(url) != origin(request.url) {
            for name in ["Authorization", "Cookie", "Cookie2", "Host"] { next.setValue(nil, forHTTPHeaderField: name) }
        }
        return next
    }

    /// Returns the scheme, host and port of a URL.
    private static func origin(_ url: URL?) -> [String?] {
        let scheme = url?.scheme?.lowercased()
        return [scheme, url?.host()?.lowercased(), url?.port.map(String.init) ?? (scheme == "https" ? "443" : "80")]
    }

    /// Reads the whole stream; called on the load's own queue, which may block.
    private static func data(of stream: InputStream) -> Data {
        var data = Data()
        var buffer = [UInt8](repeating: 0, count: 65_536)
        stream.open()
        defer { stream.close() }
        while true {
            let count = stream.read(&buffer, maxLength: buffer.count)
            guard count > 0 else { return data }
            data += buffer.prefix(count)
        }
    }
}
