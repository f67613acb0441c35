//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
import Synchronization
public import URLLoading

/// Answers requests in place of a server.
///
/// It is given the request as the session would send it, with its whole body as `httpBody`. What it throws, the load fails with. It runs
/// in a task of its own for each request, and that task is cancelled when the load is.
public typealias StubbedAnswer = @Sendable (_ request: URLRequest) async throws -> (HTTPURLResponse, Data)

extension URLSessionConfiguration {
    /// The field by which the sessions of a configuration find their answers; it reaches no answer and no server.
    static let stubField = "X-URLLoading-Stub"

    /// A configuration whose sessions ask a closure, and no network.
    ///
    /// ```swift
    /// let session = URLSession(configuration: .stubbed { request in
    ///     (try HTTPURLResponse.stub(for: request, status: 404), Data("none".utf8))
    /// })
    /// ```
    ///
    /// Each configuration has answers of its own, so that tests may run at the same time. Nothing is stored: neither cookies nor responses.
    ///
    /// - Parameter answer: Answers each request for http and https, redirects included.
    /// - Returns: A configuration like `.ephemeral`.
    public static func stubbed(by answer: @escaping StubbedAnswer) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.stub(by: answer)
        return configuration
    }

    /// Has the sessions that are made of this configuration ask a closure, and no network.
    ///
    /// The closure is kept for as long as the process lives. Other `URLProtocol` classes of the configuration are never asked. The field
    /// that tells configurations apart is one of ``URLSessionConfiguration/httpAdditionalHeaders``: set those before, or add to them.
    /// What is not http or https fails with `URLError.unsupportedURL`.
    ///
    /// - Parameter answer: Answers each request for http and https.
    public func stub(by answer: @escaping StubbedAnswer) {
        let name = UUID().uuidString
        StubbedLoad.answers.withLock { $0[name] = answer }
        protocolClasses = [StubbedLoad.self] + (protocolClasses ?? [])
        httpAdditionalHeaders = (httpAdditionalHeaders ?? [:]).merging([Self.stubField: name]) { $1 }
    }
}

extension HTTPURLResponse {
    /// A response to a request, for a ``StubbedAnswer``.
    ///
    /// - Parameters:
    ///   - request: What is answered.
    ///   - status: The status.
    ///   - fields: The header fields.
    /// - Throws: `URLError.badServerResponse` where the request has no URL.
    /// - Returns: The response.
    public static func stub(for request: URLRequest, status: Int = 200, fields: [String: String] = [:]) throws -> HTTPURLResponse
    {
        guard let url = request.url,
            let response = HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields)
        else { throw URLError(.badServerResponse) }
        return response
    }
}

/// One load that a closure answers.
///
/// Sendable because all of its own state is under a mutex.
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

    /// The request that follows a redirect (RFC 9110, section 15.4); nil where the response is none.
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

    /// Scheme, host and port.
    private static func origin(_ url: URL?) -> [String?] {
        let scheme = url?.scheme?.lowercased()
        return [scheme, url?.host()?.lowercased(), url?.port.map(String.init) ?? (scheme == "https" ? "443" : "80")]
    }

    /// All that a stream has; on the load's own queue, which may wait.
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
