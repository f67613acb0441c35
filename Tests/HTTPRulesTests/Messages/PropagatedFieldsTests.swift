// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import Testing

@Suite struct PropagatedFieldsTests {
    private func names(_ fields: [(String, String)], own: [(String, String)] = [], leftOrigin: Bool = false) -> [String] {
        var block = HeaderBlock()
        for (name, value) in own { block.append(name, value) }
        return PropagatedFields.admitted(fields, beside: block, leftOrigin: leftOrigin).map { "\($0): \($1)" }
    }

    private let trace = [("traceparent", "1"), ("tracestate", "a=1"), ("baggage", "b=2")]

    @Test func `a tracer's fields are sent with the request`() {
        #expect(names(trace) == ["traceparent: 1", "tracestate: a=1", "baggage: b=2"])
    }

    @Test func `a request's own traceparent is kept, without the tracer's tracestate`() {
        #expect(names(trace, own: [("Traceparent", "mine")]) == ["baggage: b=2"])
        #expect(names(trace, own: [("TraceState", "mine")]) == ["traceparent: 1", "baggage: b=2"])
        #expect(names(trace, own: [("Baggage", "mine")]) == ["traceparent: 1", "tracestate: a=1"])
    }

    @Test func `baggage is not sent to other origins`() {
        #expect(names(trace + [("Baggage", "c")], leftOrigin: true) == ["traceparent: 1", "tracestate: a=1"])
    }

    @Test func `a field is sent once, with its last value`() {
        #expect(names([("b3", "1"), ("B3", "2")]) == ["B3: 2"])
    }

    @Test(arguments: [
        ("baggage", "a\r\nX-Evil: 1"), ("baggage", "a\nb"), ("a b", "c"), ("", "c"), ("a:", "c"), ("Host", "h"),
        ("Content-Length", "1"), ("Transfer-Encoding", "chunked"), ("Connection", "close"), ("Authorization", "Basic YTpi"),
        ("Cookie", "a=b"), ("Proxy-Authorization", "Basic YTpi"), ("Upgrade", "h2c"),
    ])
    func `a tracer can neither break the message framing nor set credentials`(name: String, value: String) {
        #expect(names([(name, value), ("b3", "1")]) == ["b3: 1"])
    }
}
