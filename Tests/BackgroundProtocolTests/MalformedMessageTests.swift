// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPWire
import LoadingModel
import SeededNumbers
import Testing

@testable import BackgroundProtocol

@Suite struct MalformedMessageTests {
    private static let noJSON = "it is not a JSON object, or exceeds a message's limits"

    /// The text of an order with other values of some fields, or with additional fields.
    private static func order(task: String = "1", _ rest: String = "", request: String = "", created: String = "0") -> String {
        #"{"kind":"submit","order":{"task":\#(task),"delivery":"download","created":\#(created),"request":{"url":"http://a/"\#(request)}\#(rest)}}"#
    }

    private static func settings(_ settings: String, identifier: String = "i") -> String {
        #"{"kind":"attach","attachment":{"identifier":"\#(identifier)","settings":{\#(settings)}}}"#
    }

    private static func failure(_ text: String) -> MessageFailure? {
        do throws(MessageFailure) {
            _ = try Form.json.client(Array(text.utf8))
            return nil
        } catch { return error }
    }

    @Test(
        arguments: [
            (order(), nil),
            (order(task: "0"), "a task's number is less than 1"),
            (order(task: "-1"), "a task's number is less than 1"),
            (order(task: "null"), "order.task is missing or unknown"),
            (order(task: "1.5"), "order.task cannot be read"),
            (order(task: "1e99"), "order.task cannot be read"),
            (order(task: "\"1\""), "order.task has the wrong type"),
            (order(created: "1e999"), "order.created cannot be read"),
            (order(created: "true"), "order.created has the wrong type"),
            (order(#","earliestBegin":-1e999"#), "order.earliestBegin cannot be read"),
            (order(#","delivery":"bake""#), nil),
            (order(request: #","url":"""#), nil),
            (order(request: #","timeout":1e400"#), "order.request.timeout cannot be read"),
            (order(request: #","mainDocument":"""#), "order.request.mainDocument is not a URL"),
            (order(request: #","body":{"kind":"stream"}"#), "order.request.body has an unknown kind"),
            (order(request: #","body":{"data":"AA=="}"#), "order.request.body.kind is missing or unknown"),
            (order(request: #","body":{"kind":"data"}"#), "order.request.body.data is missing or unknown"),
            (order(request: #","body":{"kind":"data","data":"*"}"#), "order.request.body.data cannot be read"),
            (order(request: #","body":{"kind":"file"}"#), "order.request.body.path is missing or unknown"),
            (order(request: #","body":{"kind":"file","path":"a"}"#), "a body's file is not absolute"),
            (order(request: #","body":{"kind":"file","path":""}"#), "a body's file is not absolute"),
            (
                order(request: #","body":{"kind":"file","path":"/a\u0000b"}"#),
                "a body's file is empty, too long or contains a NUL"
            ),
            (order(request: #","fields":["a"]"#), "a field has no value"),
            (order(request: #","fields":["a","\u0100"]"#), "a field has a character that is not a byte"),
            (order(request: #","needs":{"prohibited":256}"#), "order.request.needs.prohibited cannot be read"),
            (settings(""), nil),
            (settings("", identifier: ""), "a session's identifier is empty, too long or contains a NUL"),
            (settings("", identifier: #"a\u0000"#), "a session's identifier is empty, too long or contains a NUL"),
            (settings("", identifier: String(repeating: "a", count: 1_024)), nil),
            (
                settings("", identifier: String(repeating: "a", count: 1_025)),
                "a session's identifier is empty, too long or contains a NUL"
            ),
            (settings(#""cookies":{"kind":"file","path":"cookies"}"#), "a store's path is not absolute"),
            (settings(#""cookies":{"kind":"file"}"#), "attachment.settings.cookies.path is missing or unknown"),
            (settings(#""cookies":{"kind":"cloud"}"#), "attachment.settings.cookies has an unknown kind"),
            (settings(#""policy":{"temporaryDirectory":"tmp"}"#), "the directory for downloads is not absolute"),
            (settings(#""policy":{"maximumConnectionsPerHost":0}"#), "a session's limit of connections per host is less than 1"),
            (settings(#""policy":{"cachedBodyLimit":-1}"#), "a limit is negative"),
            (settings(#""policy":{"maximumDecodingRatio":0}"#), "a session's maximum decoding ratio is less than 1"),
            (settings(#""policy":{"additionalHeaders":["a"]}"#), "a field has no value"),
            (settings(#""policy":{"minimumTLSVersion":65536}"#), "attachment.settings.policy.minimumTLSVersion cannot be read"),
            (settings(#""policy":{"connections":{"unixSocketPath":"a"}}"#), "a socket's path is not absolute"),
            (
                settings(#""policy":{"connections":{"addresses":[{"endpoint":{"port":70000},"addresses":[]}]}}"#),
                "an endpoint's port is not a port"
            ),
            (
                settings(#""policy":{"connections":{"addresses":[{"endpoint":{"host":"A"},"addresses":[]}]}}"#),
                "an endpoint's host is not in its canonical form"
            ),
            (settings(#""launch":{"kind":"arguments"}"#), "attachment.settings.launch.arguments is missing or unknown"),
            (settings(#""launch":{"kind":"arguments","arguments":[]}"#), "the program is missing or unknown"),
            (settings(#""launch":{"kind":"arguments","arguments":["a"]}"#), "the program is not absolute"),
            (
                settings(#""launch":{"kind":"arguments","arguments":["/a","\u0000"]}"#),
                "an argument is too long or contains a NUL"
            ),
            (
                settings(#""launch":{"kind":"arguments","arguments":["/a"],"directory":"b"}"#),
                "the program's directory is not absolute"
            ),
            (settings(#""launch":{"kind":"systemdUnit","name":""}"#), "the unit is empty, too long or contains a NUL"),
            (settings(#""proxies":{"http":{}}"#), "attachment.settings.proxies.http.scriptURL is missing or unknown"),
            (
                settings(#""proxies":{"http":{"server":{"kind":"ftp","host":"a","port":1}}}"#),
                "attachment.settings.proxies.http.server.kind is missing or unknown"
            ),
            (settings(#""proxies":{"http":{"server":{"kind":"http","host":"a","port":-1}}}"#), "a proxy's port is not a port"),
            (settings(#""security":{"exceptions":[{"domain":"*"}]}"#), "an exception is not for a valid domain"),
            (settings(#""security":{"exceptions":[{"domain":"a"},{"domain":"A."}]}"#), "a domain has two exceptions"),
            (settings(#""security":{"pins":[{"domain":"10.0.0.1/8"}]}"#), "pins are not for a valid domain"),
            (settings(#""security":{"pins":[{"domain":"a"},{"domain":"A"}]}"#), "a domain is pinned twice"),
            (#"{"kind":"told"}"#, "task is missing or unknown"),
            (#"{"kind":"hello","version":1}"#, "role is missing or unknown"),
            (#"{"kind":"hello","version":1,"role":"king"}"#, "role is missing or unknown"),
            (#"{"kind":"hello","role":"session"}"#, "version is missing or unknown"),
            (#"{"kind":"proxies","request":1}"#, "url is missing or unknown"),
            (#"{"kind":"command","task":1}"#, "command is missing or unknown"),
            (
                #"{"kind":"answer","number":1,"answer":{"kind":"delayed","choice":"use"}}"#,
                "an answer has a choice that its question does not offer"
            ),
            (
                #"{"kind":"answer","number":1,"answer":{"kind":"credential","choice":"guess"}}"#,
                "answer.choice is missing or unknown"
            ),
            (
                #"{"kind":"manage","number":1,"manage":{"kind":"quit","program":""}}"#,
                "a program is empty, too long or contains a NUL"
            ),
            (#"{"kind":"manage","number":1,"manage":{"kind":"pause"}}"#, "manage.transfer is missing or unknown"),
            (#"{}"#, "kind is missing or unknown"),
            (#"{"kind":1}"#, "kind has the wrong type"),
            ("", noJSON), ("[]", noJSON), ("null", noJSON), (#"{"kind":"invalidate""#, noJSON),
            (#"{"kind":"invalidate"}}"#, noJSON),
            (#"{"kind":"submit","order":3}"#, "order has the wrong type"),
            (#"{"kind":"invalidate","order":3}"#, nil),
        ] as [(String, String?)])
    func `a malformed message is refused with the reason`(text: String, fault: String?) {
        #expect(Self.failure(text) == fault.map { .malformed($0) })
    }

    @Test(arguments: [
        (#"{"kind":"sing"}"#, "sing"), (#"{"kind":"sing","order":3,"task":"x"}"#, "sing"),
        (#"{"kind":"command","command":{"kind":"sing"},"task":1}"#, "command sing"),
        (#"{"kind":"command","command":{"kind":"sing","priority":"high"},"task":1}"#, "command sing"),
        (#"{"kind":"answer","answer":{"kind":"sing","choice":"use"},"number":1}"#, "answer sing"),
        (#"{"kind":"answer","answer":{"kind":"sing"},"number":1}"#, "answer sing"),
        (#"{"kind":"manage","manage":{"kind":"sing"},"number":1}"#, "manage sing"),
    ])
    func `an unknown kind of a program's message is distinguished from a malformed one`(text: String, kind: String) {
        #expect(Self.failure(text) == .unknownKind(kind))
    }

    @Test(arguments: [
        (#"{"kind":"sing"}"#, "sing"), (#"{"kind":"event","event":{"kind":"sing"},"task":1}"#, "event sing"),
        (#"{"kind":"event","event":{"kind":"sing","bytes":"x"},"task":1}"#, "event sing"),
        (#"{"kind":"question","question":{"kind":"sing"},"task":1,"number":1}"#, "question sing"),
    ])
    func `an unknown kind of the daemon's message is distinguished from a malformed one`(text: String, kind: String) {
        #expect(throws: MessageFailure.unknownKind(kind)) { try Form.json.daemon(Array(text.utf8)) }
    }

    @Test func `a long unknown kind is truncated in the error`() {
        guard case .unknownKind(let kind) = Self.failure(#"{"kind":"\#(String(repeating: "ä", count: 100_000))"}"#) else {
            Issue.record("the message was accepted")
            return
        }
        #expect(kind.utf8.count < 300)
    }

    @Test(arguments: [
        #"{"kind":"event","event":{"kind":"wrote","bytes":-1,"total":0},"task":1}"#,
        #"{"kind":"event","event":{"kind":"wrote","bytes":1},"task":1}"#,
        #"{"kind":"event","event":{"kind":"response","response":{"url":"a"}},"task":1}"#,
        #"{"kind":"event","event":{"kind":"response","response":{"url":"","local":{}}},"task":1}"#,
        #"{"kind":"event","event":{"kind":"response","response":{"url":"a","http":{"status":1000}}},"task":1}"#,
        #"{"kind":"event","event":{"kind":"response","response":{"url":"a","http":{"status":-1}}},"task":1}"#,
        #"{"kind":"event","event":{"kind":"finished","outcome":{"body":{"kind":"file","path":"a"}}},"task":1}"#,
        #"{"kind":"event","event":{"kind":"waitingForConnectivity"},"task":0}"#, #"{"kind":"attached","task":-1}"#,
        #"{"kind":"attached","task":9223372036854775807}"#,
        #"{"kind":"accepted","tasks":[0]}"#, #"{"kind":"welcome"}"#, #"{"kind":"done"}"#, #"{"kind":"known"}"#,
        #"{"kind":"proxies","number":1,"urls":[""]}"#, #"{"kind":"status","number":1,"status":{"process":2147483648}}"#,
        #"{"kind":"known","known":{"phase":"dreaming","order":{"task":1,"delivery":"collect","created":0,"request":{}}}}"#,
    ])
    func `a malformed message of the daemon is refused`(text: String) {
        #expect {
            try Form.json.daemon(Array(text.utf8))
        } throws: { error in
            if case MessageFailure.malformed = error { true } else { false }
        }
    }

    @Test func `limits apply, and values at a limit are accepted`() {
        let fields = { (count: Int) in
            Self.order(request: #","fields":["# + Array(repeating: #""a","b""#, count: count).joined(separator: ",") + "]")
        }
        #expect(Self.failure(fields(1_000)) == nil)
        #expect(Self.failure(fields(1_001)) == .malformed("a request has too many fields"))
        let long = { (count: Int) in Self.order(request: #","fields":["a","\#(String(repeating: "b", count: count - 1))"]"#) }
        #expect(Self.failure(long(256 << 10)) == nil)
        #expect(Self.failure(long(256 << 10 + 1)) == .malformed("a request's fields are too long"))
        let body = { (count: Int) in
            Self.order(request: #","body":{"kind":"data","data":"\#(Data(repeating: 1, count: count).base64EncodedString())"}"#)
        }
        #expect(Self.failure(body(1 << 20)) == nil)
        #expect(Self.failure(body(1 << 20 + 1)) == .malformed("a body of 1048577 bytes is too long"))
        let point = { (count: Int) in Self.order(#","resumeData":"\#(Data(repeating: 1, count: count).base64EncodedString())""#) }
        #expect(Self.failure(point(1 << 20)) == nil)
        #expect(Self.failure(point(1 << 20 + 1)) == .malformed("resume data is too long"))
        let known = #"{"space":{"host":"a","port":1,"kind":"http","method":"HTTPBasic"},"credential":{"kind":"trust"}}"#
        let credentials = { (count: Int) in
            Self.settings(#""knownCredentials":["# + Array(repeating: known, count: count).joined(separator: ",") + "]")
        }
        #expect(Self.failure(credentials(1_000)) == nil)
        #expect(Self.failure(credentials(1_001)) == .malformed("the credentials has too many entries"))
    }

    // `JSONDecoder` traps at the 513th bracket if this bracket is the last byte.
    @Test(arguments: ["[", #"{"a":"#, #"[{"a":"#], [1, 2, 63, 64, 65, 255, 256, 511, 512, 513, 10_000, 1_000_000])
    func `unclosed nesting of any depth is refused`(opening: String, depth: Int) {
        let text = #"{"kind":"invalidate","extra":"# + String(repeating: opening, count: depth)
        #expect(Self.failure(text) == .malformed(Self.noJSON))
    }

    @Test func `nesting in an unknown field is skipped up to the limit`() {
        let nested = { (depth: Int) in
            #"{"kind":"invalidate","extra":"# + String(repeating: "[", count: depth) + String(repeating: "]", count: depth) + "}"
        }
        #expect(Self.failure(nested(63)) == nil)
        #expect(Self.failure(nested(64)) == .malformed(Self.noJSON))
    }

    @Test func `a message with too many values is refused`() {
        let text = { (count: Int) in
            #"{"kind":"invalidate","extra":["# + Array(repeating: "1", count: count).joined(separator: ",") + "]}"
        }
        #expect(Self.failure(text(1 << 20 - 3)) == nil)
        #expect(Self.failure(text(1 << 20 - 2)) == .malformed(Self.noJSON))
    }

    @Test func `bytes that are not text are refused`() {
        for bytes in [[0xFF], [0xFE, 0xFF], [0xFF, 0xFE, 0, 0], [0, 0, 0, 0], [0xEF, 0xBB, 0xBF], [0x22, 0xFF, 0x22]] as [[UInt8]]
        {
            #expect(throws: MessageFailure.self) { try Form.json.client(bytes) }
            #expect(throws: MessageFailure.self) { try Form.json.daemon(bytes) }
        }
        let name =
            Array(#"{"kind":"attach","attachment":{"identifier":""#.utf8) + [0xC3, 0x28] + Array(#"","settings":{}}}"#.utf8)
        #expect(throws: MessageFailure.self) { try Form.json.client(name) }
    }

    @Test func `a truncated message is refused`() throws {
        let client = try Form.json.write(ClientMessage.submit(try Samples.order()))
        for count in 0..<client.count {
            #expect(throws: MessageFailure.malformed(Self.noJSON)) {
                try Form.json.client(Array(client.prefix(count)))
            }
        }
    }

    private static let signs = Array("\"\\{}[],:0-9e".utf8)

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `a message with random changes is read or refused, and what is read can be sent`(seed: UInt64) throws {
        var numbers = SeededNumbers(seed: seed)
        let clients = try Form.allCases.flatMap { form in
            try Samples.clientMessages().map { try form.write($0) }
        }
        let daemons = try Form.allCases.flatMap { form in
            try Samples.daemonMessages().map { try form.write($0) }
        }
        for bytes in clients + daemons {
            var bytes = bytes
            for _ in 0..<1 + numbers.next(below: 4) {
                let index = numbers.next(below: bytes.count)
                switch numbers.next(below: 3) {
                case 0: bytes[index] = UInt8(numbers.next(below: 256))
                case 1: bytes.remove(at: index)
                default: bytes.insert(Self.signs[numbers.next(below: Self.signs.count)], at: index)
                }
            }
            for form in Form.allCases {
                if let message = try? form.client(bytes) {
                    for form in Form.allCases { _ = try form.write(message) }
                }
                if let message = try? form.daemon(bytes) {
                    for form in Form.allCases { _ = try form.write(message) }
                }
            }
        }
    }
}
