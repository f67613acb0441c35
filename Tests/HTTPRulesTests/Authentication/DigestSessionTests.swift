// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

@testable import HTTPRules

@Suite struct DigestSessionTests {
    private static func challenge(_ line: String) throws -> AuthenticateHeader.Challenge {
        try #require(AuthenticateHeader.challenges(in: [line]).first)
    }

    private static func session(_ line: String) throws -> DigestSession {
        try #require(DigestSession(challenge(line)))
    }

    private static func parameters(_ header: String) throws -> AuthenticateHeader.Challenge { try challenge(header) }

    @Test func `the examples of the RFCs are reproduced`() throws {
        let realm = #"Digest realm="http-auth@example.org", qop="auth, auth-int", "#
        let nonce =
            #"nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#
        let head = #"Digest username="Mufasa", realm="http-auth@example.org", uri="/dir/index.html", "#
        let middle =
            #"nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", nc=00000001, "#
            + #"cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", qop=auth, "#
        let tail = #", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#
        let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
        // RFC 7616, section 3.9.1.
        for (algorithm, response) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ] {
            var session = try Self.session("\(realm)algorithm=\(algorithm), \(nonce)")
            let header = session.authorization(
                user: "Mufasa", password: "Circle of Life", method: "GET", uri: "/dir/index.html", cnonce: cnonce
            )
            #expect(header == "\(head)algorithm=\(algorithm), \(middle)response=\"\(response)\"\(tail)")
        }
        // RFC 2617, section 3.5.
        var classic = try Self.session(
            #"Digest realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", "#
                + #"opaque="5ccc069c403ebaf9f0171e9517f40e41""#
        )
        let header = classic.authorization(
            user: "Mufasa", password: "Circle Of Life", method: "GET", uri: "/dir/index.html", cnonce: "0a4f113b"
        )
        #expect(
            header == #"Digest username="Mufasa", realm="testrealm@host.com", uri="/dir/index.html", "#
                + #"nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", nc=00000001, cnonce="0a4f113b", qop=auth, "#
                + #"response="6629fae49393a05397450978507c4ef1", opaque="5ccc069c403ebaf9f0171e9517f40e41""#
        )
    }

    @Test func `the user name is hashed if the server requires it`() throws {
        // RFC 7616, section 3.9.2, with erratum 4897: the printed value is not SHA-512/256 of FIPS 180-4.
        let line =
            #"Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, "#
            + #"nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", "#
            + "charset=UTF-8"
        for (suffix, user) in [
            (", userhash=true", #"username="793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b""#),
            (", userhash=false", "username*=UTF-8''J%C3%A4s%C3%B8n%20Doe"),
        ] {
            var session = try Self.session(line + suffix)
            let header = session.authorization(
                user: "Jäsøn Doe", password: "Secret, or not?", method: "GET", uri: "/doe.json",
                cnonce: "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v"
            )
            #expect(header.hasPrefix("Digest \(user), realm="))
            #expect(header.contains(#"response="3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5""#))
            #expect(header.contains("userhash=true") == suffix.contains("true"))
        }
    }

    @Test func `the published test vectors of the hash algorithms are reproduced`() {
        // RFC 1321, section A.5; FIPS 180-4's examples for SHA-256 and SHA-512/256.
        let rows: [(DigestAlgorithm, String, String)] = [
            (.md5, "", "d41d8cd98f00b204e9800998ecf8427e"),
            (.md5sess, "message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            (.sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (.sha256sess, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (.sha512_256, "abc", "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23"),
            (.sha512_256sess, "", "c672b8d1ef56ed28ab87c3622c5114069bdd3ad7b8f9737498d0c01ecef0967a"),
            (
                .sha512_256,
                "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                "3928e184fb8690f840da3988121d31be65cb9d3ef83ee6146feac861e19b563a"
            ),
        ]
        for (algorithm, text, expected) in rows {
            #expect(algorithm.hash(Array(text.utf8)) == expected, "\(algorithm)")
            var hasher = DigestAlgorithm.Hasher(algorithm)
            for byte in text.utf8 { hasher.update([byte]) }
            #expect(hasher.finish() == expected, "\(algorithm) in pieces")
        }
    }

    @Test func `a challenge that cannot be answered creates no session`() throws {
        for line in [
            "Digest realm=a, nonce=", "Digest realm=a", "Basic realm=a, nonce=b", "Digest realm=a, nonce=b, algorithm=SHA3-256",
            "Digest realm=a, nonce=b, qop=auth-conf", "Digest realm=\"a\u{0}\", nonce=b",
        ] { #expect(try DigestSession(Self.challenge(line)) == nil, "\(line)") }
        for (line, needsBody) in [
            ("Digest nonce=b", false), ("digest nonce=b, QOP=\" AUTH-INT , auth\"", false),
            ("Digest nonce=b, qop=auth-int", true),
            ("Digest nonce=b, qop=\"auth-conf, auth-int\"", true), ("Digest nonce=b, qop=\"\", algorithm=\"md5-SESS\"", false),
        ] { #expect(try Self.session(line).needsBody == needsBody, "\(line)") }
        let session = try Self.session("Digest nonce=b, domain=\"/a  http://b/c\", stale=TRUE")
        #expect(session.domain == ["/a", "http://b/c"] && session.isStale && session.realm == "")
    }

    @Test func `the nonce count grows with each request and restarts with a new nonce`() throws {
        var session = try Self.session("Digest realm=a, nonce=n1, qop=auth")
        func answer() throws -> AuthenticateHeader.Challenge {
            try Self.parameters(session.authorization(user: "u", password: "p", method: "GET", uri: "/", cnonce: "c"))
        }
        for count in ["00000001", "00000002", "00000003"] { #expect(try answer().parameter("nc") == count) }
        #expect(session.hasUsedNonce)
        // Only a refusal with the same nonce that is not stale is about the password.
        for (line, mayRenew) in [
            ("nonce=n1", false), ("nonce=n1, stale=true", true), ("nonce=n2", true), ("nonce=n2, stale=true", true),
        ] {
            let next = try Self.session("Digest realm=a, qop=auth, \(line)")
            #expect(next.mayRenew(after: session.proof) == mayRenew && next.mayRenew(after: nil), "\(line)")
        }
        // Another load received the same new nonce first.
        let keptCount = session.continues(with: try Self.session("Digest realm=a, nonce=n1, qop=auth, stale=true"))
        #expect(keptCount)
        #expect(try answer().parameter("nc") == "00000004")
        #expect(try answer().parameter("opaque") == nil)
        // The opaque value is that of the latest challenge, even if the nonce is unchanged (RFC 7616, section 3.3).
        let keptAgain = session.continues(with: try Self.session("Digest realm=a, nonce=n1, qop=auth, opaque=o1, stale=true"))
        #expect(keptAgain)
        var parameters = try answer()
        #expect(parameters.parameter("opaque") == "o1" && parameters.parameter("nc") == "00000006")
        let next = try Self.session("Digest realm=a, nonce=n2, qop=auth, stale=true")
        let keptOld = session.continues(with: next)
        #expect(!keptOld && !next.hasUsedNonce)
        session = next
        parameters = try answer()
        #expect(parameters.parameter("opaque") == nil)
        #expect(parameters.parameter("nc") == "00000001" && parameters.parameter("nonce") == "n2")
        let proof = try #require(session.proof)
        let tookNext = session.read(authenticationInfo: "nextnonce=\"n3\", qop=auth", proof: proof)
        #expect(tookNext)
        parameters = try answer()
        #expect(parameters.parameter("nc") == "00000001" && parameters.parameter("nonce") == "n3")
        // The same nonce again does not restart the count.
        let keptNonce = session.read(authenticationInfo: "nextnonce=n3", proof: proof)
        #expect(keptNonce)
        #expect(try answer().parameter("nc") == "00000002")
    }

    @Test func `a session key is derived from the first nonces only`() throws {
        // RFC 7616, section 3.4.2.
        for algorithm in [DigestAlgorithm.md5sess, .sha256sess, .sha512_256sess] {
            var session = try Self.session("Digest realm=a, nonce=n1, qop=auth, algorithm=\(algorithm.rawValue)")
            func hash(_ text: String) -> String { algorithm.hash(Array(text.utf8)) }
            let key = hash("\(hash("u:a:p")):n1:c1")
            for (nonce, count, cnonce) in [("n1", "00000001", "c1"), ("n1", "00000002", "c2"), ("n4", "00000001", "c3")] {
                let header = session.authorization(user: "u", password: "p", method: "GET", uri: "/x", cnonce: cnonce)
                #expect(
                    try Self.parameters(header).parameter("response")
                        == hash("\(key):\(nonce):\(count):c1:auth:\(hash("GET:/x"))"))
                if count == "00000002" {
                    let proof = try #require(session.proof)
                    let tookNext = session.read(authenticationInfo: "nextnonce=n4", proof: proof)
                    #expect(tookNext)
                }
            }
            // Another user gets another key, and a new challenge results in a new key.
            let other = session.authorization(user: "v", password: "p", method: "GET", uri: "/x", cnonce: "c4")
            #expect(try Self.parameters(other).parameter("cnonce") == "c4")
            session = try Self.session("Digest realm=a, nonce=n5, qop=auth, algorithm=\(algorithm.rawValue), stale=true")
            let fresh = session.authorization(user: "v", password: "p", method: "GET", uri: "/x", cnonce: "c5")
            #expect(try Self.parameters(fresh).parameter("cnonce") == "c5")
        }
    }

    @Test func `auth-int covers the body`() throws {
        var session = try Self.session("Digest realm=a, nonce=n, qop=auth-int, algorithm=SHA-256")
        func hash(_ text: String) -> String { DigestAlgorithm.sha256.hash(Array(text.utf8)) }
        for body in ["some body", nil] {
            let header = session.authorization(
                user: "u", password: "p", method: "POST", uri: "/x?y",
                bodyHash: body.map { body in { $0.hash(Array(body.utf8)) } },
                cnonce: "c"
            )
            let parameters = try Self.parameters(header)
            let expected = hash(
                "\(hash("u:a:p")):n:\(try #require(parameters.parameter("nc"))):c:auth-int:\(hash("POST:/x?y:\(hash(body ?? ""))"))"
            )
            #expect(parameters.parameter("response") == expected && parameters.parameter("qop") == "auth-int")
        }
    }

    @Test func `a challenge without qop is answered as in RFC 2069`() throws {
        // RFC 2069, section 2.4, with its erratum.
        var session = try Self.session(
            #"Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41""#
        )
        let header = session.authorization(
            user: "Mufasa", password: "CircleOfLife", method: "GET", uri: "/dir/index.html", cnonce: "unused"
        )
        #expect(
            header == #"Digest username="Mufasa", realm="testrealm@host.com", uri="/dir/index.html", "#
                + #"nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", response="1949323746fe6a43ef61f9606e7febea", "#
                + #"opaque="5ccc069c403ebaf9f0171e9517f40e41""#
        )
    }

    @Test func `quotes and non-ASCII characters are preserved`() throws {
        var session = try Self.session(#"Digest realm="say \"hi\" \\ there", nonce="n\"", qop=auth, opaque="o\\""#)
        let header = session.authorization(user: #"a"b\c"#, password: "p", method: "GET", uri: "/", cnonce: "c")
        #expect(header.contains(#"username="a\"b\\c", realm="say \"hi\" \\ there", uri="/", nonce="n\"", "#))
        #expect(header.hasSuffix(#", opaque="o\\""#))
        func hash(_ text: String) -> String { DigestAlgorithm.md5.hash(Array(text.utf8)) }
        let key = hash(#"a"b\c:say "hi" \ there:p"#)
        #expect(try Self.parameters(header).parameter("response") == hash("\(key):n\":00000001:c:auth:\(hash("GET:/"))"))
        // User names are encoded (RFC 8187, section 3.2.1) for servers known to support that; control characters are always
        // encoded.
        for (challenge, user, expected) in [
            ("charset=\"utf-8\"", "é'*%a", "username*=UTF-8''%C3%A9%27%2A%25a"),
            ("algorithm=SHA-256", "é", "username*=UTF-8''%C3%A9"),
            ("qop=auth", "é", "username=\"é\""), ("qop=auth", "a\r\nb", "username*=UTF-8''a%0D%0Ab"),
            ("charset=UTF-8", "a b", "username=\"a b\""),
        ] {
            var session = try Self.session("Digest realm=r, nonce=n, \(challenge)")
            let header = session.authorization(user: user, password: "p", method: "GET", uri: "/", cnonce: "c")
            #expect(header.hasPrefix("Digest \(expected), realm="), "\(header)")
        }
    }

    @Test func `the server must prove that it knows the password`() throws {
        func hash(_ text: String) -> String { DigestAlgorithm.md5.hash(Array(text.utf8)) }
        for qop in ["auth", "auth-int"] {
            var session = try Self.session("Digest realm=a, nonce=n, qop=\(qop)")
            _ = session.authorization(user: "u", password: "p", method: "GET", uri: "/x", cnonce: "c")
            let proof = try #require(session.proof)
            let body = qop == "auth" ? "" : ":\(hash("answer"))"
            let right = hash("\(hash("u:a:p")):n:00000001:c:\(qop):\(hash(":/x\(body)"))")
            let wrong = hash(right)
            let rows: [(String, String?, Bool)] = [
                ("rspauth=\"\(right)\", qop=\(qop), cnonce=\"c\", nc=00000001", hash("answer"), true),
                ("nc=00000001 ,rspauth=\(right.uppercased())", hash("answer"), true),
                ("rspauth=\"\(wrong)\", nextnonce=evil", hash("answer"), false), ("rspauth=\"\"", hash("answer"), false),
                // The server sends no proof, or its proof covers a body whose hash is unknown.
                ("", nil, true), ("qop=auth", nil, true), ("rspauth=\"\(wrong)\"", nil, qop == "auth-int"),
            ]
            for (info, bodyHash, expected) in rows {
                let isAccepted = session.read(authenticationInfo: info, proof: proof, bodyHash: bodyHash)
                #expect(isAccepted == expected, "\(qop): \(info)")
            }
            // The next nonce of a server with a wrong proof is ignored.
            let header = session.authorization(user: "u", password: "p", method: "GET", uri: "/x", cnonce: "c")
            #expect(header.contains("nonce=\"n\"") && header.contains("nc=00000002"))
            // An earlier proof remains valid after later requests.
            let isStillGood = session.read(authenticationInfo: "rspauth=\(right)", proof: proof, bodyHash: hash("answer"))
            #expect(isStillGood)
        }
    }

    @Test func `descriptions contain no secrets`() throws {
        var session = try Self.session("Digest realm=a, nonce=n, qop=auth, algorithm=MD5-sess")
        let header = session.authorization(user: "user", password: "hunter2", method: "GET", uri: "/x", cnonce: "c")
        let response = try #require(Self.parameters(header).parameter("response"))
        let secret = DigestAlgorithm.md5.hash(Array("user:a:hunter2".utf8))
        for text in ["\(session)", String(reflecting: session), "\(session.proof as Any)", String(reflecting: session.proof)] {
            for word in [response, secret, "hunter2"] { #expect(!text.contains(word), "\(text)") }
        }
    }

    @Test func `octets that are not UTF-8 are hashed and sent as they came`() throws {
        func octets(_ bytes: [UInt8]) -> String { OctetText.text(of: bytes[...]) }
        let (realm, nonce, user, password) = (
            octets(Array("caf".utf8) + [0xE9]), octets([0xF4]), octets([0x75, 0xE4]), octets([0x70, 0xFF])
        )
        for (algorithm, more) in [(DigestAlgorithm.md5, ""), (.sha256, ", algorithm=SHA-256"), (.md5, ", userhash=true")] {
            var session = try Self.session("Digest realm=\"\(realm)\", nonce=\"\(nonce)\", qop=auth\(more)")
            let header = session.authorization(user: user, password: password, method: "GET", uri: "/", cnonce: "c")
            var block = HeaderBlock()
            block.append("Authorization", header)
            let sent = block.bytes[block.lines[0].value]
            func has(_ bytes: [UInt8]) -> Bool { sent.firstRange(of: bytes) != nil }
            #expect(has(Array("realm=\"caf".utf8) + [0xE9, 0x22]) && has(Array("nonce=\"".utf8) + [0xF4, 0x22]))
            let first = [0x75, 0xE4] + Array(":caf".utf8) + [0xE9]
            let name = more.contains("userhash") ? Array(algorithm.hash(first).utf8) : [0x75, 0xE4]
            #expect(has(Array("username=\"".utf8) + name + [0x22]))
            let secret = algorithm.hash(first + [0x3A, 0x70, 0xFF])
            let proof = Array("\(secret):".utf8) + [0xF4] + Array(":00000001:c:auth:\(algorithm.hash(Array("GET:/".utf8)))".utf8)
            #expect(try Self.parameters(header).parameter("response") == algorithm.hash(proof))
        }
    }
}
