// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Options that behave like those of curl.
@Suite(.timeLimit(.minutes(3)))
struct CurlLikenessTests {
    private func request(_ arguments: String...) async throws -> RecordedRequest {
        var sent: RecordedRequest?
        try await withScriptedServer(reply: { _ in .ok("done") }) { server in
            let result = try await Tool.run(["get"] + arguments + [server.url("/a").absoluteString])
            #expect(result.code == 0, "\(result.errors)")
            sent = server.requests.first
        }
        return try #require(sent)
    }

    @Test(arguments: ["POST", "PUT", "PATCH", "DELETE"])
    func `data has the type of a form, regardless of the method`(_ method: String) async throws {
        let sent = try await request("-X", method, "-d", "a=1")
        #expect(sent.method == method)
        #expect(sent.values(of: "Content-Type") == ["application/x-www-form-urlencoded"])
        #expect(
            try await request("-X", method, "-d", "a=1", "-H", "Content-Type: text/csv").values(of: "Content-Type") == [
                "text/csv"
            ])
    }

    @Test func `-H with a name and a colon removes the field, and with a name and a semicolon sends it empty`() async throws {
        let sent = try await request(
            "-H", "Accept:", "-H", "user-agent:", "-H", "Accept-Encoding: ", "-H", "Accept-Language:", "-H", "X-Nothing:", "-H",
            "X-Empty;", "-d", "a=1", "-H", "Content-Type:")
        for name in ["Accept", "User-Agent", "Accept-Encoding", "Accept-Language", "X-Nothing", "Content-Type"] {
            #expect(sent.header(name) == nil, "\(name)")
        }
        #expect(sent.header("X-Empty") == "")
        #expect(try await request("-A", "me", "-H", "User-Agent:").header("User-Agent") == nil)
    }

    @Test func `-I does not accept content codings unless asked to`() async throws {
        try await withScriptedServer(reply: { _ in .raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n") }) { server in
            for (arguments, coding) in [
                (["-I"], nil), (["-I", "--compressed"], "gzip"), (["-I", "-H", "Accept-Encoding: br"], "br"), ([], "gzip"),
            ] as [([String], String?)] {
                let address = server.url("/a").absoluteString
                _ = try await Tool.run(
                    ["get", "--max-time", "5"] + (arguments.isEmpty ? ["-X", "HEAD"] : arguments) + [address])
                let sent = try #require(server.requests.last)
                #expect(sent.method == "HEAD")
                #expect(
                    coding.map { sent.header("Accept-Encoding")?.hasPrefix($0) == true }
                        ?? (sent.header("Accept-Encoding") == nil))
            }
        }
    }

    @Test(.enabled(if: geteuid() == 0))
    func `--dnssec refuses host names if the validating library is missing`() async throws {
        let preparation = #"""
            exec unshare -m /bin/sh -c 'for file in $(ldconfig -p | awk "/libunbound.so/ {print \$NF}"); do mount --bind /dev/null $file; done
            exec "$0" "$@"' "$0" "$@"
            """#
        let result = try await Tool.run(["get", "--dnssec", "http://validated.test/"], preparation: preparation)
        #expect(result.code == 6, "\(result.errors)")
        #expect(result.errors.contains("DNSSEC cannot be checked"), "\(result.errors)")
        // An address needs no lookup.
        #expect(try await request("--dnssec").path == "/a")
    }
}
