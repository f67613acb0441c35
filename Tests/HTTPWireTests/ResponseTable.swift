// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

/// A response and its expected outcome.
struct ResponseRow: Sendable, CustomTestStringConvertible {
    var why: String
    var kind: ResponseParser.RequestKind
    var bytes: [UInt8]
    var outcome: String

    init(_ why: String, _ text: String, _ outcome: String) {
        self.init(why, bytes: Array(text.utf8), outcome)
    }

    init(_ why: String, _ kind: ResponseParser.RequestKind, _ text: String, _ outcome: String) {
        self.init(why, bytes: Array(text.utf8), outcome)
        self.kind = kind
    }

    init(_ why: String, bytes: [UInt8], _ outcome: String) {
        self.why = why
        self.kind = .other
        self.bytes = bytes
        self.outcome = outcome
    }

    var testDescription: String { why }

    /// Expects the outcome, however the bytes are split.
    func check(limits: ResponseParser.Limits = ResponseParser.Limits(), _ location: SourceLocation) {
        let (whole, differing) = Transcript.everyWay(bytes, kind, limits: limits)
        #expect(whole.outcome == outcome, "\(why)", sourceLocation: location)
        for (cuts, transcript) in differing {
            Issue.record("\(why): \(cuts): \(transcript), whole: \(whole)", sourceLocation: location)
        }
    }
}
