// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPWire
import LoadingModel
import Testing
import URLLoading

@Suite struct URLRequestTests {
    let swift = URL(string: "http://swift.org") ?? URL(filePath: "/")

    @Test func `a new request has Apple's defaults`() {
        let request = URLRequest(url: swift)
        #expect(request.url == swift)
        #expect(request.httpMethod == "GET")
        #expect(request.allHTTPHeaderFields == nil)
        #expect(request.mainDocumentURL == nil)
        #expect(request.timeoutInterval == 60)
        #expect(request.cachePolicy == .useProtocolCachePolicy)
        #expect(request.networkServiceType == .default)
        #expect(request.httpBody == nil && request.httpBodyStream == nil)
        #expect(request.httpShouldHandleCookies && !request.httpShouldUsePipelining)
        #expect(request.allowsCellularAccess && request.allowsExpensiveNetworkAccess)
        #expect(request.allowsConstrainedNetworkAccess && request.allowsUltraConstrainedNetworkAccess)
        #expect(!request.assumesHTTP3Capable && !request.requiresDNSSECValidation && !request.allowsPersistentDNS)
        #expect(request.attribution == .developer)
        #expect(request.cookiePartitionIdentifier == nil)
    }

    @Test func `raw values match Apple's`() {
        #expect(URLRequest.CachePolicy.reloadIgnoringCacheData.rawValue == 1)
        #expect(URLRequest.CachePolicy.returnCacheDataElseLoad.rawValue == 2)
        #expect(URLRequest.CachePolicy.returnCacheDataDontLoad.rawValue == 3)
        #expect(URLRequest.CachePolicy.reloadIgnoringLocalAndRemoteCacheData.rawValue == 4)
        #expect(URLRequest.CachePolicy.reloadRevalidatingCacheData.rawValue == 5)
        #expect(URLRequest.NetworkServiceType.responsiveData.rawValue == 6)
        #expect(URLRequest.NetworkServiceType.callSignaling.rawValue == 11)
        #expect(URLRequest.Attribution.user.rawValue == 1)
    }

    @Test func `a timeout counts as explicit once it is set, even to sixty seconds`() {
        var request = URLRequest(url: swift)
        #expect(!request.hasExplicitTimeout && request.loadRequest.timeout == nil)
        request.timeoutInterval = 60
        #expect(request.hasExplicitTimeout && request.loadRequest.timeout == 60)
        #expect(URLRequest(url: swift, timeoutInterval: 5).loadRequest.timeout == 5)
    }

    @Test(arguments: [
        ("get", "GET"), ("gEt", "GET"), ("HEAd", "HEAD"), ("pOST", "POST"), ("put", "PUT"), ("DeleTE", "DELETE"),
        ("Connect", "CONNECT"), ("options", "options"), ("trace", "trace"), ("patch", "patch"), ("PATCH", "PATCH"),
        ("foo", "foo"),
    ])
    func `well-known methods are converted to upper case`(given: String, expected: String) {
        var request = URLRequest(url: swift)
        request.httpMethod = given
        #expect(request.httpMethod == expected)
        request.httpMethod = nil
        #expect(request.httpMethod == "GET")
    }

    @Test func `field names are case-insensitive, keep their first spelling, and values are joined with a comma`() {
        var request = URLRequest(url: swift)
        request.setValue("application/json", forHTTPHeaderField: "Accept")
        request.setValue("application/xml", forHTTPHeaderField: "accept")
        #expect(request.allHTTPHeaderFields == ["Accept": "application/xml"])
        request.addValue("text/html", forHTTPHeaderField: "ACCEPT")
        #expect(request.allHTTPHeaderFields == ["Accept": "application/xml,text/html"])
        #expect(request.value(forHTTPHeaderField: "aCCept") == "application/xml,text/html")
        request.setValue(nil, forHTTPHeaderField: "accept")
        #expect(request.allHTTPHeaderFields == [:])
        request.allHTTPHeaderFields = ["A": "1"]
        #expect(request.loadRequest.headers.first("a") == "1")
        request.allHTTPHeaderFields = nil
        #expect(request.allHTTPHeaderFields == nil)
    }

    @Test(arguments: [
        ("token\n", "token"), ("token\r\n", "token"), (" \t\r\n token \n\n", "token"), ("\n", ""), ("a b", "a b"),
        ("caf\u{E9} ", "caf\u{E9}"), ("a\r\nevil: 1", "a\r\nevil: 1"), ("a\nb\n", "a\nb"), ("a\0", "a\0"), ("\u{A0}", "\u{A0}"),
    ])
    func `whitespace and line ends around a field value are removed, and nothing else`(given: String, expected: String) {
        var request = URLRequest(url: swift)
        request.setValue(given, forHTTPHeaderField: "Foo")
        #expect(request.value(forHTTPHeaderField: "Foo") == expected)
        request.addValue(given, forHTTPHeaderField: "Foo")
        #expect(request.value(forHTTPHeaderField: "Foo") == "\(expected),\(expected)")
        request.allHTTPHeaderFields = ["Foo": given]
        #expect(request.allHTTPHeaderFields == ["Foo": expected])
    }

    @Test func `folded field values are kept, as on Apple's platforms`() {
        var request = URLRequest(url: swift)
        request.setValue("Bar\r\n\tBuz", forHTTPHeaderField: "Foo")
        #expect(request.value(forHTTPHeaderField: "Foo") == "Bar\r\n\tBuz")
    }

    @Test func `setting a body removes the body stream, and vice versa`() {
        var request = URLRequest(url: swift)
        request.httpBody = Data("x".utf8)
        request.httpBodyStream = InputStream(data: Data())
        #expect(request.httpBody == nil)
        guard case .streamOnDemand = request.loadRequest.body else { return #expect(Bool(false)) }
        request.httpBody = Data("y".utf8)
        #expect(request.httpBodyStream == nil)
        guard case .data = request.loadRequest.body else { return #expect(Bool(false)) }
    }

    @Test func `a copy does not change with its original`() {
        var request = URLRequest(url: swift)
        request.setValue("1", forHTTPHeaderField: "A")
        let copy = request
        request.httpMethod = "PUT"
        request.setValue("2", forHTTPHeaderField: "A")
        #expect(copy.httpMethod == "GET" && copy.value(forHTTPHeaderField: "A") == "1")
        #expect(copy != request)
    }

    @Test func `equal requests have equal hashes, and the order of fields does not matter`() {
        var left = URLRequest(url: swift)
        var right = left
        left.setValue("1", forHTTPHeaderField: "A")
        left.setValue("2", forHTTPHeaderField: "B")
        right.setValue("2", forHTTPHeaderField: "B")
        right.setValue("1", forHTTPHeaderField: "A")
        #expect(left == right && left.hashValue == right.hashValue)
    }

    @Test func `requests are compared by their visible timeouts`() {
        var request = URLRequest(url: swift)
        request.timeoutInterval = 60
        #expect(request == URLRequest(url: swift))
        request.timeoutInterval = 61
        #expect(request != URLRequest(url: swift))
    }

    @Test func `a relative URL is made absolute by the initializer, but kept when set`() throws {
        let relative = try #require(URL(string: "/get", relativeTo: swift))
        var request = URLRequest(url: relative)
        #expect(request.url?.baseURL == nil)
        request.url = relative
        #expect(request.url?.baseURL == swift)
        #expect(request.description == "/get -- http://swift.org")
        request.url = nil
        #expect(request.description == "url: nil")
    }

    @Test func `requests bridge to NSURLRequest and back`() throws {
        var request = URLRequest(url: swift)
        request.setValue("1", forHTTPHeaderField: "A")
        let object = request as NSURLRequest
        #expect(object.value(forHTTPHeaderField: "a") == "1")
        #expect((object as URLRequest) == request)
        #expect((object as Any as? URLRequest) == request)
        let mutable = try #require(object.mutableCopy() as? NSMutableURLRequest)
        mutable.httpMethod = "POST"
        #expect(object.httpMethod == "GET")
        let copy = try #require(mutable.copy() as? NSURLRequest)
        mutable.httpMethod = "PUT"
        #expect(copy.httpMethod == "POST" && !(copy is NSMutableURLRequest))
        #expect(object.isEqual(request as NSURLRequest) && !object.isEqual(copy))
    }

    @Test func `an unarchived request equals the original`() throws {
        var request = URLRequest(url: swift, cachePolicy: .returnCacheDataElseLoad, timeoutInterval: 7)
        request.httpMethod = "POST"
        request.allHTTPHeaderFields = ["A": "1", "B": "2"]
        request.httpBody = Data("body".utf8)
        request.allowsCellularAccess = false
        request.networkServiceType = .video
        let data = try NSKeyedArchiver.archivedData(withRootObject: request as NSURLRequest, requiringSecureCoding: true)
        let back = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: NSURLRequest.self, from: data))
        #expect((back as URLRequest) == request)
    }

    @Test(arguments: [true, false], [nil, [:], ["A": "1"]] as [[String: String]?])
    func `a request is archived with fields, without fields and with an empty dictionary of them`(
        securely: Bool, fields: [String: String]?
    ) throws {
        var request = URLRequest(url: swift)
        request.allHTTPHeaderFields = fields
        for object in [request as NSURLRequest, NSMutableURLRequest(url: swift)] {
            let data = try NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: securely)
            let unarchiver = try NSKeyedUnarchiver(forReadingFrom: data)
            unarchiver.requiresSecureCoding = securely
            let back = unarchiver.decodeObject(of: NSURLRequest.self, forKey: NSKeyedArchiveRootObjectKey)
            #expect(unarchiver.error == nil)
            #expect(back?.isEqual(object) == true)
            #expect(back?.allHTTPHeaderFields == object.allHTTPHeaderFields)
            #expect(type(of: try #require(back)) == type(of: object))
        }
    }

    @Test func `an unarchived request without a URL has none`() throws {
        var request = URLRequest(url: swift)
        request.url = nil
        let data = try NSKeyedArchiver.archivedData(withRootObject: request as NSURLRequest, requiringSecureCoding: true)
        let back = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: NSURLRequest.self, from: data))
        #expect(back.url == nil && back.allHTTPHeaderFields == nil)
    }

    @Test func `a request returned by the engine keeps the properties that the engine ignores`() throws {
        let mutable = NSMutableURLRequest(url: swift)
        URLProtocol.setProperty("seen", forKey: "mark", in: mutable)
        mutable.allowsCellularAccess = false
        mutable.httpBodyStream = InputStream(data: Data())
        let template = mutable as URLRequest
        var load = template.loadRequest
        load.method = "GET"
        load.body = .none
        load.headers = HeaderBlock([("A", "1"), ("a", "2")])
        let request = URLRequest(loadRequest: load, template: template)
        #expect(URLProtocol.property(forKey: "mark", in: request) as? String == "seen")
        #expect(!request.allowsCellularAccess && request.httpBodyStream == nil)
        #expect(request.allHTTPHeaderFields == ["A": "1,2"])
    }
}
