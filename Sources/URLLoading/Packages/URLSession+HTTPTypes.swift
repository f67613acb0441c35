// SPDX-License-Identifier: Apache-2.0

#if HTTPTypes
public import Foundation
public import HTTPTypes
internal import HTTPWire
internal import LoadingModel

/// Requests and responses of [swift-http-types](https://github.com/apple/swift-http-types), with the SwiftPM trait `HTTPTypes`.
///
/// Cancellation, errors and delegates work as in the methods that take a ``URLRequest``.
extension URLSession {
    /// Loads a request into memory.
    ///
    /// - Returns: The body and the response, whatever its status.
    /// - Throws: A `URLError`; `badURL` if the request has no URL.
    public nonisolated(nonsending) func data(
        for request: HTTPRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, HTTPResponse) {
        let (data, response) = try await data(for: request.urlRequest, delegate: delegate)
        return (data, try response.requiredHTTPResponse)
    }

    /// Uploads data as the request body and loads the response into memory.
    ///
    /// - Returns: The response body and the response, whatever its status.
    /// - Throws: A `URLError`; `badURL` if the request has no URL.
    public nonisolated(nonsending) func upload(
        for request: HTTPRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, HTTPResponse) {
        let (data, response) = try await upload(for: request.urlRequest, from: bodyData, delegate: delegate)
        return (data, try response.requiredHTTPResponse)
    }

    /// Uploads a file as the request body and loads the response into memory.
    ///
    /// - Returns: The response body and the response, whatever its status.
    /// - Throws: A `URLError`; `badURL` if the request has no URL.
    public nonisolated(nonsending) func upload(
        for request: HTTPRequest, fromFile fileURL: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, HTTPResponse) {
        let (data, response) = try await upload(for: request.urlRequest, fromFile: fileURL, delegate: delegate)
        return (data, try response.requiredHTTPResponse)
    }

    /// Downloads the response to a request into a file, which the caller must move or delete.
    ///
    /// - Returns: The file and the response, whatever its status.
    /// - Throws: A `URLError`; `badURL` if the request has no URL.
    public nonisolated(nonsending) func download(
        for request: HTTPRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, HTTPResponse) {
        let (file, response) = try await download(for: request.urlRequest, delegate: delegate)
        return (file, try response.requiredHTTPResponse)
    }

    /// Loads a request and returns its response when the head has arrived, with the body as an asynchronous sequence of bytes.
    ///
    /// - Returns: The bytes and the response, whatever its status.
    /// - Throws: A `URLError`; `badURL` if the request has no URL.
    public nonisolated(nonsending) func bytes(
        for request: HTTPRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, HTTPResponse) {
        let (bytes, response) = try await bytes(for: request.urlRequest, delegate: delegate)
        return (bytes, try response.requiredHTTPResponse)
    }
}

extension URLSessionTask {
    /// ``originalRequest`` as an `HTTPRequest` of swift-http-types.
    public var originalHTTPRequest: HTTPRequest? { originalRequest?.httpRequest }

    /// ``currentRequest`` as an `HTTPRequest` of swift-http-types.
    public var currentHTTPRequest: HTTPRequest? { currentRequest?.httpRequest }

    /// ``response`` as an `HTTPResponse` of swift-http-types.
    public var httpResponse: HTTPResponse? { (response as? HTTPURLResponse)?.httpResponse }
}

extension URLRequest {
    /// Converts an `HTTPRequest` of swift-http-types; nil if its scheme, authority and path form no valid URL.
    ///
    /// Fields with the same name are joined: cookies by semicolons, others by commas.
    ///
    /// - Parameter httpRequest: A request with a scheme, an authority and a path.
    public init?(httpRequest: HTTPRequest) {
        let path = httpRequest.path ?? "/"
        // Without a leading slash, the path would become part of the authority.
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

    /// The request as an `HTTPRequest` of swift-http-types, without its body; nil if it has no URL or its method is not a token.
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
    /// The response as an `HTTPResponse` of swift-http-types; nil if its status code does not have three digits.
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
            throw ErrorTranslation.appError(.badURL, "the request has no scheme or authority, or its URL is invalid", url: nil)
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
