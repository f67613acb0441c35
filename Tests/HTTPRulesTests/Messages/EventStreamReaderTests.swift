// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

/// "Interpreting an event stream" (WHATWG HTML, section 9.2.6), including its examples.
struct EventStreamReaderTests {
    private typealias Event = EventStreamReader.Event

    private static func events(
        _ text: String, from id: String = "", limit: Int = 1000
    ) -> (events: [Event], reader: EventStreamReader) {
        var reader = EventStreamReader(lastIdentifier: id, limit: limit)
        var events: [Event] = []
        do throws(EventStreamReader.TooLong) {
            for byte in text.utf8 { if let event = try reader.take(byte) { events.append(event) } }
        } catch {
            Issue.record("too long")
        }
        return (events, reader)
    }

    private static func data(_ text: String) -> [String] { events(text).events.map(\.data) }

    @Test(arguments: [
        ("data: YHOO\ndata: +2\ndata: 10\n\n", ["YHOO\n+2\n10"]),
        ("data\n\ndata\ndata\n\ndata:", ["", "\n"]),
        ("data:test\n\ndata: test\n\n", ["test", "test"]),
        ("data:  two\n\n", [" two"]),
        (": test stream\n\ndata: first\n\n", ["first"]),
        ("data: a\r\n\r\ndata: b\r\rdata: c\n\n", ["a", "b", "c"]),
        ("data: a\r\ndata: b\r\n\r\n", ["a\nb"]),
        ("\u{FEFF}data: a\n\n", ["a"]),
        ("\u{FEFF}\u{FEFF}data: a\n\n", []),
        ("DATA: a\n\nxdata: a\n\ndata : a\n\n", []),
        ("data: a", []),
        ("data: a\n", []),
        ("\n\n\n", []),
        ("data: {\"a\": \"ü\"}\n\n", ["{\"a\": \"ü\"}"]),
        ("data:a:b\n\n", ["a:b"]),
    ])
    func `data lines are joined into events`(text: String, data: [String]) {
        #expect(Self.data(text) == data)
    }

    @Test func `the type applies to one event only`() {
        let events = Self.events("event: add\ndata: 1\n\ndata: 2\n\nevent: gone\n\ndata: 3\n\nevent\ndata: 4\n\n").events
        #expect(events.map(\.type) == ["add", "message", "message", "message"])
    }

    @Test func `the last event ID persists until the next one`() {
        let (events, reader) = Self.events(
            "data: a\nid: 1\n\ndata: b\n\nid: 2\n\ndata: c\nid\n\ndata: d\nid: x\u{0}y\n\nid: 9\n", from: "0")
        #expect(events.map(\.lastIdentifier) == ["1", "1", "", ""])
        // An unterminated event does not set the last event ID.
        #expect(reader.lastIdentifier == "")
    }

    @Test(arguments: [("10000", 10000), ("5s", nil), ("-1", nil), ("", nil), ("99999999999999999999", .max)] as [(String, Int?)])
    func `a retry time consists of digits`(text: String, value: Int?) {
        #expect(Self.events("retry: \(text)\n\n").reader.retry == value)
    }

    @Test func `invalid UTF-8 is replaced`() throws {
        var reader = EventStreamReader(limit: 100)
        var events: [Event] = []
        for byte in Array("data: a".utf8) + [0xFF] + Array("b\n\n".utf8) {
            if let event = try reader.take(byte) { events.append(event) }
        }
        #expect(events.map(\.data) == ["a\u{FFFD}b"])
    }

    @Test func `lines and events are limited in size`() throws {
        var line = EventStreamReader(limit: 100)
        #expect(throws: EventStreamReader.TooLong.self) { for _ in 0..<200 { _ = try line.take(0x61) } }
        var event = EventStreamReader(limit: 100)
        #expect(throws: EventStreamReader.TooLong.self) {
            for byte in String(repeating: "data: 0123456789\n", count: 20).utf8 { _ = try event.take(byte) }
        }
        #expect(Self.data("data: " + String(repeating: "a", count: 99) + "\n\n") == [String(repeating: "a", count: 99)])
    }
}
