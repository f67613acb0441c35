//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import Testing
import URLLoading

@Suite struct URLProtectionSpaceTests {
    @Test func `a space describes itself as Foundation's does`() {
        let server = URLProtectionSpace(
            host: "apple.com", port: 80, protocol: "http", realm: nil, authenticationMethod: nil
        )
        #expect(
            server.description.hasSuffix(
                ": Host:apple.com, Server:http, Auth-Scheme:NSURLAuthenticationMethodDefault, Realm:(null), Port:80, "
                    + "Proxy:NO, Proxy-Type:(null)"
            )
        )
        #expect(server.description.hasPrefix("<URLProtectionSpace 0x"))
        let proxy = URLProtectionSpace(
            proxyHost: "proxy", port: 3128, type: NSURLProtectionSpaceHTTPProxy, realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic
        )
        #expect(
            proxy.description.hasSuffix(
                ": Host:proxy, Server:(null), Auth-Scheme:NSURLAuthenticationMethodHTTPBasic, Realm:r, Port:3128, "
                    + "Proxy:YES, Proxy-Type:http"
            )
        )
    }
}
