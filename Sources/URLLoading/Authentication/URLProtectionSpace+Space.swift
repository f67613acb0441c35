//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Foundation
package import LoadingModel

extension URLProtectionSpace {
    /// The space as the engine knows it; nil where its method is none that there is, so that nothing can be kept for it.
    package var space: ProtectionSpace? {
        let prefix = "NSURLAuthenticationMethod"
        guard authenticationMethod.hasPrefix(prefix),
            let method = AuthenticationMethod(rawValue: String(authenticationMethod.dropFirst(prefix.count)))
        else { return nil }
        return ProtectionSpace(
            host: host,
            port: port,
            kind: (isProxy() ? proxyType : `protocol`) ?? "",
            isProxy: isProxy(),
            realm: realm,
            method: method
        )
    }

    /// As somebody has made it: where it had no protocol, it has none again.
    static func make(_ space: ProtectionSpace) -> URLProtectionSpace {
        let kind = space.kind.isEmpty ? nil : space.kind
        let method = "NSURLAuthenticationMethod" + space.method.rawValue
        return space.isProxy
            ? URLProtectionSpace(
                proxyHost: space.host, port: space.port, type: kind, realm: space.realm, authenticationMethod: method
            )
            : URLProtectionSpace(
                host: space.host, port: space.port, protocol: kind, realm: space.realm, authenticationMethod: method
            )
    }
}
