// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import LoadingModel

extension URLProtectionSpace {
    /// The space in the engine's representation.
    package var space: ProtectionSpace {
        ProtectionSpace(
            host: host, port: port, kind: (isProxy() ? proxyType : `protocol`) ?? "", isProxy: isProxy(), realm: realm,
            method: AuthenticationMethod(constant: authenticationMethod) ?? .default)
    }
}

extension AuthenticationMethod {
    private static let prefix = "NSURLAuthenticationMethod"

    /// The `NSURLAuthenticationMethod…` constant.
    var constant: String { Self.prefix + rawValue }

    /// Makes the method for an `NSURLAuthenticationMethod…` constant; nil for any other string.
    init?(constant: String) {
        guard constant.hasPrefix(Self.prefix) else { return nil }
        self.init(rawValue: String(constant.dropFirst(Self.prefix.count)))
    }
}
