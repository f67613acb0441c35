//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire

/// Reads `WWW-Authenticate` and `Proxy-Authenticate`: the ways in which a server lets a client say who it is (RFC 9110, section
/// 11.3).
package enum AuthenticateHeader {
    package struct Parameter: Hashable, Sendable {
        /// In lower case.
        package let name: String
        /// Without its quotes.
        package let value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    package struct Challenge: Hashable, Sendable {
        /// As the server wrote it; schemes compare without regard to case.
        package let scheme: String
        package let token68: String?
        package let parameters: [Parameter]

        package init(scheme: String, token68: String? = nil, parameters: [Parameter] = []) {
            self.scheme = scheme
            self.token68 = token68
            self.parameters = parameters
        }

        /// The first value of a parameter; a name may stand only once (section 11.2).
        package func parameter(_ name: String) -> String? {
            parameters.first { $0.name == name.lowercased() }?.value
        }

        package var realm: String? { parameter("realm") }

        package func isScheme(_ name: String) -> Bool { scheme.lowercased() == name.lowercased() }
    }

    /// Every challenge of the given field lines, in order.
    ///
    /// What is no challenge is passed over, up to the next comma.
    package static func challenges(in lines: [String]) -> [Challenge] {
        lines.flatMap { line in
            var reader = ChallengeReader(Array(line.utf8)[...])
            return reader.readAll()
        }
    }

    /// The parameters of a field that has no scheme, such as `Authentication-Info` (RFC 7615, section 3).
    package static func parameters(in value: String) -> [Parameter] {
        var reader = ChallengeReader(Array(value.utf8)[...])
        return reader.takeParameters()
    }
}
