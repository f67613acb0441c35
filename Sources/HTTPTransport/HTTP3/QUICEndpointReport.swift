// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Reports what became of a place to the session.
final class QUICEndpointReport {
    private let endpoint: QUICEndpoint
    private let origin: ServerName
    private let directory: any QUICDirectory

    init(_ endpoint: QUICEndpoint, of origin: ServerName, _ directory: any QUICDirectory) {
        self.endpoint = endpoint
        self.origin = origin
        self.directory = directory
    }

    var isAlternative: Bool { endpoint.source == .alternativeService }

    /// The value of `Alt-Used` for a request; nil if the place is not an alternative service of its origin.
    func alternative(of head: RequestHead) -> String? {
        let own = origin.host.contains(":") ? "[\(origin.host)]" : origin.host
        guard isAlternative, let authority = head.headers.first(.host)?.lowercased(),
            authority == own || authority == "\(own):\(origin.port)"
        else { return nil }
        let host = endpoint.host.contains(":") ? "[\(endpoint.host)]" : endpoint.host
        return endpoint.port == 443 ? host : "\(host):\(endpoint.port)"
    }

    func succeeded() { directory.succeeded(endpoint, of: origin) }
    func failed() { directory.failed(endpoint, of: origin) }
}
