// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import LoadingModel

/// The peer's address in error messages.
extension ConnectionFacts {
    /// The peer's address and port, for error messages.
    var peer: String {
        guard let address = remoteAddress else { return "the server" }
        return "\(address):\(remotePort ?? 0)"
    }
}

extension ResponseParser.Failure {
    /// The kind of the load's error.
    var kind: LoadError.Kind {
        switch category {
        case .badServerResponse: .badServerResponse
        case .cannotParseResponse: .cannotParseResponse
        case .tooLarge: .dataLengthExceedsMaximum
        case .connectionLost: .connectionLost
        }
    }
}
