// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import HTTPWire
internal import LoadingModel

/// The request, the response and the error of a task, as the app sees them.
struct TaskMessages: Sendable {
    let original: URLRequest?
    /// The configuration's header fields, which are added to the current request when the load begins.
    let sessionFields: [(name: String, value: String)]
    /// The current request; nil while it equals the original.
    private var current: URLRequest?
    /// The request from which `current` is made lazily.
    private var sentRequest: LoadRequest?
    /// All header fields of the current request as sent; set when an app-defined cache was asked about the request.
    var sentFields: HeaderBlock?
    private var response: URLResponse?
    /// The response from which `response` is made lazily.
    private var loadResponse: LoadResponse?
    var error: (any Error)?

    init(original: URLRequest?, sessionFields: [(name: String, value: String)]) {
        self.original = original
        self.sessionFields = sessionFields
    }

    var hasResponse: Bool { loadResponse != nil }

    /// The URL of the current request.
    var url: URL? { sentRequest?.url ?? (current ?? original)?.url }

    mutating func note(_ request: LoadRequest?) {
        sentRequest = request
        sentFields = nil
    }

    mutating func note(_ response: LoadResponse) {
        loadResponse = response
        self.response = nil
    }

    /// Returns the response as the app sees it, the same object each time.
    mutating func visibleResponse() -> URLResponse? {
        if response == nil, let loadResponse { response = URLResponse.make(loadResponse) }
        return response
    }

    mutating func visibleRequest(isStarted: Bool) -> URLRequest? {
        if let sentRequest {
            self.sentRequest = nil
            current = URLRequest(loadRequest: sentRequest, template: original)
        }
        if isStarted, !sessionFields.isEmpty {
            var request = current ?? original
            request?.complete(with: sessionFields)
            current = request
        }
        return current ?? original
    }
}
