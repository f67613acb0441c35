// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPWire
import LoadingModel
import Testing

@testable import BackgroundProtocol

/// Values in the form of version 1, which must be readable for as long as databases of that version are.
@Suite struct CompatibilityTests {
    static let order =
        #"{"kind":"submit","order":{"created":712345678.5,"delivery":"download","earliestBegin":800000000,"#
        + #""interests":8200,"isDiscretionary":true,"notes":{"description":"d","expectedToReceive":7,"expectedToSend":0},"priority":0.25,"#
        + #""request":{"body":{"kind":"file","path":"/a b"},"cachePolicy":1,"fields":["Accept","*/*","X","Ã¤Ã¿"],"handlesCookies":false,"#
        + #""mainDocument":"https://example.org/","method":"PUT","needs":{"prohibited":3,"requiresDNSSEC":true,"service":3},"#
        + #""partition":"p","timeout":12.5,"url":"https://example.com/a?b#c"},"resumeData":"AQI=","task":17}}"#

    private static let finished =
        #"{"event":{"kind":"finished","outcome":{"error":{"cause":"c","isForWantOfAnswer":true,"isOfProxy":true,"#
        + #""kind":"timedOut","message":"m","networkObjection":1,"peerTrust":["AQ=="],"resumeData":"Ag==","url":"http://a/"},"#
        + #""receivedBodyBytes":3,"redirectCount":1,"response":{"expectedLength":9,"http":{"fields":["A","b"],"minorVersion":0,"#
        + #""reason":"OK","status":200},"url":"http://a/"},"sentBodyBytes":2,"timelines":[{"connection":{"interface":{"addresses":["::1"],"#
        + #""index":2,"kind":"wired","name":"eth0"},"isVerified":true,"remoteAddress":"::1","remotePort":443,"tlsVersion":772},"#
        + #""fetchStart":1.5,"networkProtocol":"http/1.1","request":{"url":"http://a/"},"source":"localCache"}]}},"kind":"event","task":4}"#

    private static let attach =
        #"{"attachment":{"identifier":"i","settings":{"cookies":{"kind":"file","path":"/c"},"#
        + #""credentials":{"kind":"memory"},"knownCredentials":[{"credential":{"kind":"password","password":"p","persistence":1,"user":"u"},"#
        + #""isDefault":true,"space":{"host":"h","kind":"https","method":"HTTPBasic","port":443,"realm":"r"}},{"credential":"#
        + #"{"certificates":["AQ=="],"kind":"identity","privateKey":"Ag=="},"space":{"host":"h","isProxy":true,"kind":"http","#
        + #""method":"ClientCertificate","port":80}}],"launch":{"arguments":["/p","-a"],"directory":"/d","kind":"arguments"},"#
        + #""policy":{"additionalHeaders":["A","b"],"connections":{"addresses":[{"addresses":["::1"],"endpoint":{"host":"a","port":1}}],"#
        + #""substitutions":[{"endpoint":{"host":"a"},"replacement":{"port":2}}]},"cookieAcceptance":0,"temporaryDirectory":"/t","#
        + #""trustRoots":["AQ=="]},"proxies":{"exceptions":{"patterns":["*.local"]},"http":{"server":{"host":"p","kind":"socks5","port":1}},"#
        + #""https":{"unusable":"why"},"list":[{"choice":{"scriptURL":"http://a/"},"domains":["d"]},{"allowsFailover":true}]},"#
        + #""security":{"allowsLocalNetworking":true,"exceptions":[{"allowsInsecureLoads":true,"domain":"example.com","#
        + #""minimumVersion":769},{"domain":"10.0.0.0/8","requiresForwardSecrecy":false}],"pins":[{"domain":"example.org","#
        + #""fault":"it names no key","includesSubdomains":true}]},"sendsLaunchEvents":false},"takesEvents":true,"told":[1,2],"#
        + #""wasLaunched":true},"kind":"attach"}"#

    static let programs = [
        order, attach, #"{"kind":"hello","role":"session","version":1}"#,
        #"{"command":{"kind":"setPriority","priority":0.5},"kind":"command","task":1}"#,
        #"{"kind":"note","task":1}"#,
        #"{"answer":{"choice":"use","credential":{"kind":"trust"},"kind":"credential"},"kind":"answer","number":3}"#,
        #"{"answer":{"choice":"cancel","kind":"credential"},"kind":"answer","number":3,"task":7}"#,
        #"{"answer":{"choice":"replace","kind":"delayed","request":{}},"kind":"answer","number":3}"#,
        #"{"kind":"told","task":1}"#,
        #"{"kind":"eventsHandled"}"#, #"{"kind":"invalidate"}"#, #"{"kind":"renew","number":1,"renewal":"flush"}"#,
        #"{"kind":"proxies","number":1,"url":"http://a/"}"#,
        #"{"kind":"manage","manage":{"kind":"pause","transfer":5},"number":1}"#,
        #"{"kind":"manage","manage":{"kind":"quit","program":"/p"},"number":1}"#,
    ]

    @Test(arguments: programs)
    func `a program's values are read from JSON as recorded`(text: String) throws {
        let message = try Form.json.client(Array(text.utf8))
        #expect(String(decoding: try Form.json.write(message), as: UTF8.self) == text)
        let again = try Form.json.client(Self.withUnknownKeys(text))
        #expect(String(decoding: try Form.json.write(again), as: UTF8.self) == text)
    }

    static let daemons = [
        finished, #"{"kind":"welcome","version":1}"#, #"{"kind":"refused","refusal":"inUse","text":"why"}"#,
        #"{"kind":"attached"}"#,
        #"{"kind":"known","known":{"counts":{"received":5},"current":{"url":"http://b/"},"order":{"created":1,"delivery":"collect","#
            + #""request":{},"task":1},"phase":"suspended","response":{"local":{"mimeType":"a/b"},"url":"file:///a"}}}"#,
        #"{"kind":"accepted","tasks":[1,2]}"#, #"{"error":{"kind":"cancelled"},"kind":"rejected","task":1}"#,
        #"{"event":{"bytes":1,"expected":3,"kind":"wrote","total":2},"kind":"event","task":1}"#,
        #"{"event":{"data":"AQ==","kind":"resumable"},"kind":"event","task":1}"#,
        #"{"kind":"question","number":1,"question":{"challenge":{"previousFailureCount":1,"serverTrust":["AQ=="],"#
            + #""space":{"host":"h","kind":"https","method":"ServerTrust","port":443}},"kind":"challenge"},"task":1}"#,
        #"{"kind":"question","number":1,"question":{"kind":"delayedRequest","request":{}},"task":1}"#,
        #"{"kind":"renewed","number":1}"#,
        #"{"kind":"proxies","number":1,"urls":[null,"http://a/"]}"#, #"{"error":{},"kind":"failed","number":1}"#,
        #"{"isLast":true,"kind":"transfers","number":1,"transfers":[{"created":1,"number":2,"program":"/p","state":"paused","task":3}]}"#,
        #"{"kind":"status","number":1,"status":{"isConnected":false,"process":7,"trouble":["a"]}}"#,
        #"{"kind":"log","log":["a"],"number":1}"#,
        #"{"kind":"done","number":1}"#,
    ]

    @Test(arguments: daemons)
    func `the daemon's values are read from JSON as recorded`(text: String) throws {
        let message = try Form.json.daemon(Array(text.utf8))
        #expect(String(decoding: try Form.json.write(message), as: UTF8.self) == text)
        let again = try Form.json.daemon(Self.withUnknownKeys(text))
        #expect(String(decoding: try Form.json.write(again), as: UTF8.self) == text)
    }

    @Test func `only hello and refusals are messages in JSON`() {
        let failure = MessageFailure.malformed("only hello and refusals are JSON")
        for text in Self.programs where !text.contains(#""kind":"hello""#) {
            #expect(throws: failure) { try MessageCoding.decodeClientMessage(Array(text.utf8)) }
        }
        for text in Self.daemons where !text.contains(#""kind":"refused""#) {
            #expect(throws: failure) { try MessageCoding.decodeDaemonMessage(Array(text.utf8)) }
        }
    }

    @Test func `an order of version 1 is decoded completely`() throws {
        guard case .submit(let order) = try Form.json.client(Array(Self.order.utf8)) else {
            throw MessageFailure.malformed("another message")
        }
        #expect(order.created == 712_345_678.5 && order.isDiscretionary)
        #expect(order.notes.description == "d" && order.notes.expectedToSend == 0 && order.notes.expectedToReceive == 7)
        let task = order.task
        #expect(
            task.id == 17 && task.interests == [.challenges, .resumePoints] && task.priority == 0.25 && task.earliestBegin == 8e8)
        guard case .download(resuming: Data([1, 2])) = task.delivery, case .file("/a b") = task.request.body else {
            throw MessageFailure.malformed("unexpected delivery or body")
        }
        let request = task.request
        #expect(request.url?.absoluteString == "https://example.com/a?b#c" && request.mainDocumentURL?.host() == "example.org")
        #expect(request.method == "PUT" && request.timeout == 12.5 && request.cachePolicy == .reloadIgnoringLocalCacheData)
        #expect(!request.handlesCookies && request.cookiePartition == "p")
        #expect(request.headers.fields.map(\.name) == ["Accept", "X"] && request.headers.fields.map(\.value) == ["*/*", "äÿ"])
        #expect(request.needs.service == .background && request.needs.requiresDNSSEC)
        #expect(request.needs.prohibited == [.cellular, .expensive])
    }

    @Test func `unknown values of a newer version become harmless defaults`() throws {
        let order =
            #"{"kind":"submit","order":{"task":1,"delivery":"download","created":0,"interests":1073741824,"request":"#
            + #"{"cachePolicy":77,"needs":{"service":300}}}}"#
        guard case .submit(let submitted) = try Form.json.client(Array(order.utf8)) else {
            throw MessageFailure.malformed("another message")
        }
        #expect(
            submitted.task.request.cachePolicy == .useProtocolCachePolicy && submitted.task.request.needs.service == .ordinary)
        #expect(submitted.task.interests.rawValue == 1 << 30)
        let attach = #"{"launch":{"kind":"telepathy"},"policy":{"cookieAcceptance":9,"cachePolicy":-1}}"#
        let settings = try Form.json.settings(Array(attach.utf8))
        #expect(settings.launch == nil && settings.policy.cookieAcceptance == .onlyFromMainDocumentDomain)
        let outcome = try Form.json.outcome(
            Array(
                (#"{"error":{"kind":"bored","networkObjection":9,"cancelReason":9},"timelines":[{"request":{},"source":"dream","#
                    + #""connection":{"interface":{"name":"a","index":1,"kind":"laser"}}}]}"#).utf8))
        guard case .failure(let error) = outcome.result else { throw MessageFailure.malformed("a success") }
        #expect(error.kind == .unknown && error.networkObjection == nil && error.cancelReason == nil)
        #expect(outcome.timelines.first?.source == .unknown && outcome.timelines.first?.connection?.interface?.kind == .other)
        let credential =
            #"{"kind":"answer","number":1,"answer":{"kind":"credential","choice":"use","credential":{"kind":"trust","persistence":9}}}"#
        guard
            case .answer(.credential(.useCredential(let used)), nil, 1) = try Form.json.client(
                Array(credential.utf8))
        else { throw MessageFailure.malformed("another answer") }
        #expect(used == LoadCredential(.trust, persistence: .none))
        guard
            case .refused(.malformed, "") = try Form.json.daemon(
                Array(#"{"kind":"refused","refusal":"bored"}"#.utf8))
        else { throw MessageFailure.malformed("another refusal") }
    }

    /// The bytes of a message with unknown keys inserted into every object.
    private static func withUnknownKeys(_ text: String) -> [UInt8] {
        Array(text.replacing("{", with: #"{"zz":[{"a":null},1.5,"\u00e4"],"#).replacing(",}", with: "}").utf8)
    }
}
