// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import SeededNumbers
import Testing

@Suite struct HSTSPolicyTests {
    @Test(arguments: [
        // The examples of RFC 6797, section 6.2.
        ("max-age=31536000", 31_536_000, false),
        ("max-age=15768000 ; includeSubDomains", 15_768_000, true),
        ("max-age=\"31536000\"", 31_536_000, false),
        ("max-age=0", 0, false),
        ("max-age=0; includeSubDomains", 0, true),
        // "The order of appearance of directives is not significant."
        ("includeSubDomains; max-age=1", 1, true),
        // "Directive names are case-insensitive."
        ("MAX-AGE=1;INCLUDESUBDOMAINS", 1, true),
        // [ directive ] *( ";" [ directive ] ): empty directives are valid anywhere.
        (";;max-age=1;;includeSubDomains; ;", 1, true),
        (" \tmax-age\t=  1\t", 1, false),
        // "UAs MUST ignore any … directives … that it does not recognize."
        ("max-age=1; preload", 1, false),
        ("max-age=1; x=y; z=\"a;\\\"max-age=2\\\";=\"; includeSubDomains", 1, true),
        ("max-age=\"\\1\"", 1, false),
        // RFC 9111, section 1.2.2: limited to the greatest value that can be represented.
        ("max-age=2147483648", 1 << 31, false),
        ("max-age=99999999999999999999999999999999999999", 1 << 31, false),
        ("max-age=00000000000000000000000000000000000001", 1, false),
    ])
    func `a field has a max-age and may include subdomains`(field: String, maxAge: Int, includesSubdomains: Bool) {
        #expect(HSTSPolicy(field) == HSTSPolicy(maxAge: maxAge, includesSubdomains: includesSubdomains), "\(field)")
    }

    @Test(arguments: [
        // "The REQUIRED max-age directive".
        "", ";", "includeSubDomains", "max-age", "max-age=", "max-age=\"\"", "x-max-age=1",
        // delta-seconds = 1*DIGIT
        "max-age=-1", "max-age=+1", "max-age=1.5", "max-age=0x1", "max-age=1s", "max-age=1 2", "max-age=\" 1\"", "max-age=１",
        // "All directives MUST appear only once", case-insensitively.
        "max-age=1; max-age=1", "max-age=1; Max-Age=0", "max-age=1; includeSubDomains; includesubdomains", "max-age=1; x; X=2",
        // "a valueless directive"
        "max-age=1; includeSubDomains=1", "max-age=1; includeSubDomains=\"\"", "max-age=1; includeSubDomains=",
        // Invalid syntax.
        "max-age=1, max-age=2", "max-age=1 includeSubDomains", "max-age=\"1", "max-age=\"1\\", "max-age=\"1\"2", "max-age==1",
        "=1; max-age=1", "max-age=1; x=y=z", "max-age=1; \"x\"", "max-age=1; x=\u{1}", "max-age=1; x=\"\u{0}\"", "max-age=1; ü",
        "'max-age=1'", "max-age:1",
    ])
    func `a field that does not conform is ignored`(field: String) {
        #expect(HSTSPolicy(field) == nil, "\(field)")
    }

    @Test func `no field value traps`() {
        let pieces = ["max-age", "=", "1", "\"", "\\", ";", " ", "includeSubDomains", ",", "x", "\u{0}", "ü"]
        for seed in 0..<2000 {
            var random = SeededNumbers(seed: UInt64(seed))
            let field = random.text(of: pieces, upTo: 12)
            if let policy = HSTSPolicy(field) {
                #expect((0...HSTSPolicy.greatestMaxAge).contains(policy.maxAge), "seed \(seed): \(field)")
            }
        }
    }
}
