//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#if HTTPTypes
public import Foundation
public import HTTPTypes
internal import HTTPWire
internal import LoadingModel

/// Requests and responses of [swift-http-types](https://github.com/apple/swift-http-types), with the package's trait `HTTPTypes`.
///
/// Cancelling, errors and delegates are those of the methods that take a ``URLRequest``.
extension URLSession {
    /// Loads a request into memory.
    ///
    /// - Returns: The body and the response, whatever its status.
    /// - Throws: A `URLError` that says why it failed, `badURL` where the request has no URL.
    public nonisolated(nonsending) func data(
        for request: HTTPRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, HTTPResponse) {
        let (data, response) = try await data(for: request.urlRequest, delegate: delegate)
        return (data, try response.requiredHTTPResponse)
    }

    /// Sends a request with a body from memory, and loads the answer into memory.
    ///
    /// - Returns: The answer's body and the response, whatever its status.
    /// - Throws: A `URLError` that says why it failed, `badURL` where the request has no URL.
    public nonisolated(nonsending) func upload(
        for request: HTTPRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, HTTPResponse) {
        let (data, response) = try await upload(for: request.urlRequest, from: bodyData, delegate: delegate)
        return (data, try response.requiredHTTPResponse)
    }

    /// Sends a file as the request's body, and loads the answer into memory.
    ///
    /// - Returns: The answer's body and the response, whatever its status.
    /// - Throws: A `URLError` that says why it failed, `badURL` where the request has no URL.
    public nonisolated(nonsending) func upload(
        for request: HTTPRequest, fromFile fileURL: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, HTTPResponse) {
        let (data, response) = try await upload(for: request.urlRequest, fromFile: fileURL, delegate: delegate)
        return (data, try response.requiredHTTPResponse)
    }

    /// Loads a request into a file, which is the caller's to move or remove.
    ///
    /// - Returns: The file and the response, whatever its status.
    /// - Throws: A `URLError` that says why it failed, `badURL` where the request has no URL.
    public nonisolated(nonsending) func download(
        for request: HTTPRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, HTTPResponse) {
        let (file, response) = try await download(for: request.urlRequest, delegate: delegate)
        return (file, try response.requiredHTTPResponse)
    }

    /// Loads a request and returns as soon as the response has come, with the body as a sequence of bytes.
    ///
    /// - Returns: The bytes and the response, whatever its status.
    /// - Throws: A `URLError` that says why it failed, `badURL` where the request has no URL.
    public nonisolated(nonsending) func bytes(
        for request: HTTPRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, HTTPResponse) {
        let (bytes, response) = try await bytes(for: request.urlRequest, delegate: delegate)
        return (bytes, try response.requiredHTTPResponse)
    }
}

extension URLSessionTask {
    /// ``originalRequest`` as a request of swift-http-types.
    public var originalHTTPRequest: HTTPRequest? { originalRequest?.httpRequest }

    /// ``currentRequest`` as a request of swift-http-types.
    public var currentHTTPRequest: HTTPRequest? { currentRequest?.httpRequest }

    /// ``response`` as a response of swift-http-types.
    public var httpResponse: HTTPResponse? { (response as? HTTPURLResponse)?.httpResponse }
}

extension URLRequest {
    /// The request for a request of swift-http-types, or nil where that has no URL.
    ///
    /// Fields of one name are joined, cookies by semicolons, others by commas.
    ///
    /// - Parameter httpRequest: With a scheme, an authority and a path.
    public init?(httpRequest: HTTPRequest) {
        let path = httpRequest.path ?? "/"
        // What follows the authority begins with a slash, or it would be a part of it.
        guard let scheme = httpRequest.scheme, let authority = httpRequest.authority, path.hasPrefix("/"),
            let url = URL(string: "\(scheme)://\(authority)\(path)")
        else { return nil }
        self.init(url: url)
        httpMethod = httpRequest.method.rawValue
        var joined: [HTTPField.Name: String] = [:]
        for field in httpRequest.headerFields {
            joined[field.name] = (joined[field.name].map { $0 + (field.name == .cookie ? "; " : ", ") } ?? "") + field.value
        }
        for (name, value) in joined { setValue(value, forHTTPHeaderField: name.rawName) }
    }

    /// The request as one of swift-http-types, without its body; nil where it has no URL or its method is no token.
    public var httpRequest: HTTPRequest? {
        guard let method = HTTPRequest.Method(httpMethod ?? "GET"), let url, let host = url.host(percentEncoded: true) else {
            return nil
        }
        let query = url.query(percentEncoded: true).map { "?\($0)" } ?? ""
        let path = url.path(percentEncoded: true)
        var request = HTTPRequest(
            method: method, scheme: url.scheme,
            authority: (host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host) + (url.port.map { ":\($0)" } ?? ""),
            path: (path.isEmpty ? "/" : path) + query)
        for (name, value) in allHTTPHeaderFields ?? [:] {
            if let name = HTTPField.Name(name) { request.headerFields.append(HTTPField(name: name, value: value)) }
        }
        return request
    }
}

extension HTTPURLResponse {
    /// The response as one of swift-http-types; nil where its status has no three digits.
    public var httpResponse: HTTPResponse? {
        guard (100...999).contains(statusCode) else { return nil }
        var response = HTTPResponse(status: HTTPResponse.Status(code: statusCode))
        for (name, value) in headers.fields {
            if let name = HTTPField.Name(name) { response.headerFields.append(HTTPField(name: name, value: value)) }
        }
        return response
    }
}

extension HTTPRequest {
    fileprivate var urlRequest: URLRequest {
        get throws {
            if let request = URLRequest(httpRequest: self) { return request }
            throw ErrorTranslation.appError(.badURL, "the request has no scheme and authority, or they make no URL", url: nil)
        }
    }
}

extension URLResponse {
    fileprivate var requiredHTTPResponse: HTTPResponse {
        get throws {
            if let response = (self as? HTTPURLResponse)?.httpResponse { return response }
            throw ErrorTranslation.appError(.badServerResponse, "the response is not an HTTP response", url: url)
        }
    }
}
#endif
