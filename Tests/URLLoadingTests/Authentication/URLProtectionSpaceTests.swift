// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading

@Suite struct URLProtectionSpaceTests {
    @Test(arguments: [
        nil, "", "Guessing", "NSURLAuthenticationMethodGuessing", "HTTPBasic", "nsurlauthenticationmethodhttpbasic",
    ])
    func `an unknown method reads as the default method`(method: String?) throws {
        let spaces = [
            URLProtectionSpace(host: "h", port: 1, protocol: "http", realm: "r", authenticationMethod: method),
            URLProtectionSpace(proxyHost: "h", port: 1, type: "http", realm: "r", authenticationMethod: method),
        ]
        for space in spaces {
            #expect(space.authenticationMethod == NSURLAuthenticationMethodDefault)
            let data = try NSKeyedArchiver.archivedData(withRootObject: space, requiringSecureCoding: true)
            let back = try NSKeyedUnarchiver.unarchivedObject(ofClass: URLProtectionSpace.self, from: data)
            #expect(back == space)
        }
        #expect(spaces[0] == URLProtectionSpace(host: "h", port: 1, protocol: "http", realm: "r", authenticationMethod: nil))
    }

    @Test(arguments: [
        NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest, NSURLAuthenticationMethodHTMLForm,
        NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate, NSURLAuthenticationMethodClientCertificate,
        NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodDefault,
    ])
    func `every known method reads as it was given`(method: String) {
        let space = URLProtectionSpace(host: "h", port: 1, protocol: "http", realm: nil, authenticationMethod: method)
        #expect(space.authenticationMethod == method)
    }

    @Test func `the description of a space has the format of Foundation`() {
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
