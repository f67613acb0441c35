// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import Testing

/// The upload fields of a response, as defined by draft-ietf-httpbis-resumable-upload-12, section 4.1, and RFC 9651.
struct UploadStatementTests {
    private static func statement(_ fields: (String, String)...) -> UploadResponseFields {
        UploadResponseFields(HeaderBlock(fields.map { (name: $0.0, value: $0.1) }))
    }

    @Test(
        arguments: [
            ("0", 0), ("25", 25), ("999999999999999", 999_999_999_999_999), ("5;a=1", 5), ("-1", nil), ("5.0", nil),
            ("\"5\"", nil), ("", nil),
            ("5, 6", nil), ("1000000000000000", nil), ("?1", nil), ("five", nil), ("0x5", nil), (" 7 ", 7),
        ] as [(String, Int64?)])
    func `an offset is a non-negative integer or ignored`(text: String, value: Int64?) {
        #expect(Self.statement(("Upload-Offset", text)).offset == value)
        #expect(Self.statement(("Upload-Length", text)).length == value)
    }

    @Test(
        arguments: [("?1", true), ("?0", false), ("?1;x", true), ("1", nil), ("true", nil), ("?2", nil), ("", nil)]
            as [(String, Bool?)])
    func `completeness is a Boolean or ignored`(text: String, value: Bool?) {
        #expect(Self.statement(("Upload-Complete", text)).isComplete == value)
        #expect(Self.statement(("Upload-Incomplete", text)).isComplete == value.map { !$0 })
    }

    @Test func `a repeated field is ignored`() {
        #expect(Self.statement(("Upload-Offset", "5"), ("Upload-Offset", "6")).offset == nil)
    }

    @Test func `limits are a dictionary whose unknown members are ignored`() throws {
        let limits = try #require(
            UploadLimits("max-size=1000, min-size=1, max-append-size=100, min-append-size=10, max-age=60, x=\"y\", z"))
        #expect(limits.maximumSize == 1000)
        #expect(limits.minimumSize == 1)
        #expect(limits.maximumAppendSize == 100)
        #expect(limits.minimumAppendSize == 10)
        #expect(limits.maximumAge == 60)
        #expect(UploadLimits("expires=5")?.maximumAge == 5)
    }

    @Test(arguments: ["max-size=\"1\"", "max-size", "max-size=-1", "max-size=1.5", "max-size=(1 2)", "=5", "max-size=1,", "a b"])
    func `a limit of another type invalidates all limits`(text: String) {
        #expect(UploadLimits(text) == nil)
    }
}
