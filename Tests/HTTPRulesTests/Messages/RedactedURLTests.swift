// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

@Suite struct RedactedURLTests {
    @Test(arguments: [
        ("https://h/a?b=c&d#e", "https://h/a?b=c&d#e"),
        ("https://ada:secret@h/a", "https://REDACTED:REDACTED@h/a"), ("https://ada@h/", "https://REDACTED@h/"),
        ("https://:@h/", "https://REDACTED:REDACTED@h/"), ("https://a@b:c@h/", "https://REDACTED:REDACTED@h/"),
        ("https://h/a@b?c=d@e", "https://h/a@b?c=d@e"), ("https://h?u=http://a:b@c/", "https://h?u=REDACTED"),
        ("https://h?u=%68ttp%3A//c/%3Ftoken%3D1&a=b", "https://h?u=REDACTED&a=b"),
        (
            "https://h?token=1&code=2&session_id=3&x-jwt-y=4&page=5",
            "https://h?token=REDACTED&code=REDACTED&session_id=REDACTED&x-jwt-y=REDACTED&page=5"
        ),
        ("https://h/?color=blue&sig=abc", "https://h/?color=blue&sig=REDACTED"),
        ("https://h/?sig=abc&color=blue", "https://h/?sig=REDACTED&color=blue"),
        ("https://h/?AWSAccessKeyId=k&Signature=s&Expires=1", "https://h/?AWSAccessKeyId=REDACTED&Signature=REDACTED&Expires=1"),
        ("https://h/?X-Goog-Signature=s", "https://h/?X-Goog-Signature=REDACTED"),
        ("https://h/?X-Amz-Signature=s&X-Amz-Credential=c", "https://h/?X-Amz-Signature=REDACTED&X-Amz-Credential=REDACTED"),
        ("https://h/?x-amz-security-token=a=b==", "https://h/?x-amz-security-token=REDACTED"),
        ("https://h/?%73ig=abc", "https://h/?%73ig=REDACTED"), ("https://h/?a=1;sig=abc;b", "https://h/?a=1;sig=REDACTED;b"),
        ("https://h/?sig=", "https://h/?sig=REDACTED"), ("https://h/?sig&a=b", "https://h/?sig&a=b"),
        ("https://h/?signal=1&mysig=2", "https://h/?signal=1&mysig=2"),
        ("https://h/?a=b#access_token=t&state=1", "https://h/?a=b#access_token=REDACTED&state=1"),
        ("https://h/#sig=a?sig=b", "https://h/#sig=REDACTED?sig=REDACTED"),
        ("https://[::1]:8/?=x&==&&sig=1", "https://[::1]:8/?=x&==&&sig=REDACTED"), ("", ""), ("=", "="), ("?=", "?="), ("@", "@"),
    ])
    func `user, password and signature of a URL are redacted`(text: String, kept: String) {
        #expect(RedactedURL.text(text) == kept)
    }
}
