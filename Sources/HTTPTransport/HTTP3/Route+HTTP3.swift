// SPDX-License-Identifier: Apache-2.0

package import HTTPRules
import HTTPWire

extension Route {
    /// The reason why the route's connections cannot use HTTP/3, whatever the session allows; nil if they can.
    package var obstacleToHTTP3: HTTP3Obstacle? {
        guard isSecure else { return .cleartext }
        guard let details else { return nil }
        if details.proxy != nil { return .proxy }
        if details.carriesByteStream { return .byteStream }
        if details.holder != nil { return .authenticatedConnection }
        return details.versions.contains(.http3) ? nil : .otherVersion
    }
}
