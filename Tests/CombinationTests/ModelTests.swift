// SPDX-License-Identifier: Apache-2.0

import CombinationModel
import Testing

/// The model's results for rows whose outcome the RFCs determine.
@Suite(.timeLimit(.minutes(3)))
struct ModelTests {
    private func reports(_ spec: String) throws -> [[String: Report]] {
        Model.traces(of: try Row(spec), folder: "r0").map { trace in
            Dictionary(trace.map { ($0.label, $0) }) { first, _ in first }
        }
    }

    private func expect(_ spec: String, _ label: String, _ outcome: Outcome, requests: Int) throws {
        for trace in try reports(spec) {
            #expect(trace[label]?.outcome == outcome, "\(spec): \(label)")
            #expect(trace[label]?.seen.count == requests, "\(spec): \(label)")
        }
    }

    @Test func `a fresh response is reused, and a plain row has one outcome`() throws {
        #expect(try reports("plain").count == 1)
        try expect("plain", "main", Outcome(status: 200, body: "v1 doc for all"), requests: 1)
        try expect("plain", "again", Outcome(status: 200, body: "v1 doc for all"), requests: 0)
        try expect("session=noCache", "again", Outcome(status: 200, body: "v2 doc for all"), requests: 1)
    }

    @Test func `a data task of a background session uses the cache, and its request is not repeated for another daemon`() throws {
        let spec = "session=backgroundData,way=delegate"
        try expect("\(spec),stored=fresh", "main", Outcome(status: 200, body: "v1 doc for all"), requests: 0)
        try expect(spec, "again", Outcome(status: 200, body: "v1 doc for all"), requests: 0)
        let killed = "command=killDaemon,moment=beforeHead"
        try expect("\(spec),message=postSmall,\(killed)", "main", Outcome(status: 200, body: "v1 doc for all"), requests: 1)
        try expect("session=background,way=download,\(killed)", "main", Outcome(status: 200, body: "v1 doc for all"), requests: 2)
    }

    @Test func `a response that only a delegate trusted is not used for other trust`() throws {
        try expect("security=refused,stored=unverified", "main", .failed(Outcome.untrusted), requests: 0)
        try expect("security=system,stored=unverified", "main", Outcome(status: 200, body: "v2 doc for all"), requests: 1)
        try expect("security=delegateAnswer", "stranger", .failed(Outcome.untrusted), requests: 0)
        try expect("security=delegateAnswer", "again", Outcome(status: 200, body: "v1 doc for all"), requests: 0)
    }

    @Test func `a response for one credential is not used for others`() throws {
        for login in ["requestField", "configurationField"] {
            try expect("principal=\(login)", "main", Outcome(status: 200, body: "v1 doc for ali"), requests: 1)
            try expect("principal=\(login)", "again", Outcome(status: 200, body: "v1 doc for ali"), requests: 0)
            try expect("principal=\(login)", "other", Outcome(status: 200, body: "v2 doc for bob"), requests: 1)
            try expect("principal=\(login)", "nobody", Outcome(status: 401, body: "who are you"), requests: 1)
        }
    }

    @Test func `the app's Authorization is sent only to its origin`() throws {
        for trace in try reports("principal=configurationField,answer=redirectAcross") {
            let fields = trace["main"]?.seen.map { $0.fields["authorization"] != nil }
            #expect(fields == [true, false])
        }
        for trace in try reports("security=system,principal=configurationField,answer=redirectDown") {
            let requests = trace["main"]?.seen ?? []
            #expect(requests.map(\.scheme) == ["https", "http"])
            #expect(requests.map { $0.fields["authorization"] != nil } == [true, false])
        }
    }

    @Test func `Vary is evaluated against the request, not against cookies that the response set`() throws {
        for trace in try reports("cookies=set,stored=varyCookie") {
            #expect(trace["seed"]?.seen.first?.fields["cookie"] == nil)
            #expect(trace["main"]?.seen.map { $0.fields["cookie"] } == ["mark=set"])
        }
    }

    @Test func `a stale response is validated`() throws {
        for trace in try reports("stored=staleWithValidator") {
            #expect(trace["main"]?.seen.first?.fields["if-none-match"] == "\"doc-v1-all\"")
            #expect(trace["main"]?.outcome == Outcome(status: 200, body: "v1 doc for all"))
        }
    }

    @Test func `a POST is not retried after a lost connection, but is retried after a refusal`() throws {
        try expect("message=postSmall,end=cutInHead", "main", .failed(-1005), requests: 1)
        for trace in try reports("protocol=http2Clear,message=postSmall,end=refusedStream") {
            #expect(trace["main"]?.seen.map(\.method) == ["POST", "POST"])
        }
        let outcomes = Set(try reports("end=cutInHead").compactMap { $0["main"]?.seen.count })
        #expect(outcomes == [1, 2])
    }

    @Test func `a redirect sets its cookie before the next request`() throws {
        for trace in try reports("cookies=overRedirect,answer=redirectWithin") {
            #expect(trace["main"]?.seen.map { $0.fields["cookie"] } == [nil, "mark=way"])
        }
    }

    @Test func `a WebSocket or a data task that becomes a stream needs a switch, and no stored response replaces it`() throws {
        for way in ["webSocket", "becomesStream"] {
            let refusal = way == "webSocket" ? -1011 : -1002
            try expect("way=\(way),stored=fresh", "main", Outcome(status: 101, body: "v2 doc for all"), requests: 1)
            try expect("way=\(way),answer=forbidden", "main", .failed(refusal), requests: 1)
            try expect("way=\(way),security=refused,stored=unverified", "main", .failed(Outcome.untrusted), requests: 0)
            try expect("way=\(way),stored=fresh", "again", Outcome(status: 200, body: "v1 doc for all"), requests: 0)
        }
        try expect("way=webSocket,end=cutInBody", "main", .failed(-1005), requests: 1)
        // With a stream of bytes, the app cannot know whether the content is complete.
        let half = Outcome(status: 101, body: Body.label(of: Array(Body.bytes("v1 doc for all").prefix(Body.length / 2))))
        try expect("way=becomesStream,end=cutInBody", "main", half, requests: 1)
        try expect("way=webSocket,message=postSmall", "main", .failed(-1000), requests: 0)
    }

    @Test func `a WebSocket uses an HTTP/2 connection only if it exists`() throws {
        for trace in try reports("protocol=http2,security=system,way=webSocket,stored=fresh") {
            #expect(trace["main"]?.seen.map(\.method) == ["CONNECT"] && trace["main"]?.outcome.status == 200)
        }
        for trace in try reports("protocol=http2,security=system,way=webSocket") {
            #expect(trace["main"]?.seen.map(\.method) == ["GET"] && trace["main"]?.outcome.status == 101)
        }
    }

    @Test func `an expected failure of trust matches its codes, and an expected failure of any kind matches all`() {
        #expect(Outcome.failed(Outcome.untrusted).matches(.failed(-1203)))
        #expect(!Outcome.failed(Outcome.untrusted).matches(.failed(-1005)))
        #expect(Outcome.failed(Outcome.anyError).matches(.failed(-1)))
        #expect(!Outcome.failed(Outcome.anyError).matches(Outcome(status: 200, body: "")))
        #expect(!Outcome(status: 200, body: "a").matches(Outcome(status: 200, body: "b")))
    }

    @Test func `a stream ends when its server closes, and an FTP file needs the server's confirmation`() throws {
        func expect(_ spec: String, _ outcome: Outcome, _ told: [String]) throws {
            let report = WireModel.report(of: try WireRow(spec))
            #expect(report.outcome == outcome && report.logins == told && report.leaks.isEmpty, "\(spec): \(report)")
        }
        let whole = Outcome(body: WireModel.label)
        let half = Outcome(body: Body.label(of: Array(Body.bytes(WireModel.label).prefix(Body.length / 2))))
        try expect("plain", whole, ["hello"])
        try expect("end=cutData", half, ["hello"])
        try expect("kind=ftpGet,end=cutData", .failed(-1005), ["anonymous"])
        try expect("kind=ftpList,end=cutData", half, ["anonymous"])
        try expect("kind=ftpGet,end=noReply,login=url", .failed(-1005), ["ada:secret"])
        for tls in ["later", "atOnce"] {
            try expect("tls=\(tls),end=ragged", .failed(-1005), ["hello"])
            for trust in ["untrusted", "pinnedWrong"] {
                try expect("tls=\(tls),trust=\(trust)", .failed(Outcome.untrusted), [])
                try expect("kind=ftpGet,tls=\(tls),trust=\(trust),login=url", .failed(Outcome.untrusted), [])
            }
        }
        try expect("kind=ftpGet,login=storage", whole, ["ada:secret"])
        try expect("kind=ftpGet,login=storage,session=noCredentials", .failed(-1013), ["anonymous"])
        try expect("kind=ftpGet,login=wrong", .failed(-1013), ["ada:wrong"])
        try expect("kind=ftpGet,login=delegateAnswer,command=cancel,moment=challenge", .failed(-999), ["anonymous"])
    }

    @Test func `a body identifies itself, and a truncated one is detected`() {
        let bytes = Body.bytes("v1 doc for all")
        #expect(bytes.count == Body.length)
        #expect(Body.label(of: bytes) == "v1 doc for all")
        #expect(Body.label(of: bytes.dropLast()) != "v1 doc for all")
        #expect(Body.label(of: []) == "")
    }
}
