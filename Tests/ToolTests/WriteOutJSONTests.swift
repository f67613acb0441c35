// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// `%{json}`, the variables of newer versions of curl, and what `--verbose` shows of a connection.
@Suite(.timeLimit(.minutes(3)))
struct WriteOutJSONTests {
    private let folder: TemporaryDirectory
    private let certificates: TestCertificates

    init() throws {
        folder = try TemporaryDirectory()
        certificates = try TestCertificates.shared.get()
        try folder.write(Array(certificates.rootPEM.utf8), to: "root.pem")
    }

    private func object(_ text: String) throws -> [String: any Sendable] {
        var found: [String: any Sendable] = [:]
        for (key, value) in try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]) {
            found[key] = "\(value)"
        }
        return found
    }

    @Test func `JSON has curl's keys in curl's order, with the same values`() async throws {
        try await withScriptedServer(reply: { request in
            request.path == "/old"
                ? .redirect(302, to: "/new") : .status(404, [("Content-Type", "text/x"), ("X-A", "1")], body: "body")
        }) { (server) async throws in
            for words in [
                ["/new"], ["/old", "-e", "http://from.example/"], ["/new", "-d", "1234"], ["/new", "-o", "f"], ["/new", "-f"],
            ] {
                let address = server.url(words[0]).absoluteString
                let rest = words.dropFirst().joined(separator: " ")
                let curl = try await Tool.run(
                    [], in: folder, preparation: "curl -s \(rest) -o /dev/null '\(address)' -w '%{stderr}%{json}'; exit 0")
                let tool = try await Tool.run(
                    ["-s", "--no-location"] + words.dropFirst() + ["-o", "/dev/null", address, "-w", "%{stderr}%{json}"],
                    in: folder)
                let (expected, found) = (curl.errors, tool.errors)
                func keys(_ text: String) -> [Substring] { text.matches(of: /"([a-z_]+)":/).map(\.1) }
                #expect(keys(found) == keys(expected), "\(found)")
                let (one, other) = (try object(expected), try object(found))
                let own = /time_.*|speed_.*|local_port|size_request|curl_version|errormsg|redirect_url/
                // With -f, curl does not read the body of an error response.
                for (key, value) in one where key.wholeMatch(of: own) == nil && (key != "size_download" || !words.contains("-f"))
                {
                    #expect("\(other[key] ?? "")" == "\(value)", "\(words) \(key)")
                }
                #expect(("\(other["errormsg"] ?? "")" == "<null>") == ("\(one["errormsg"] ?? "")" == "<null>"))
            }
        }
    }

    @Test(arguments: [
        (
            ["/new", "-w", "%{num_headers} %{urlnum} %{num_certs} %{http_connect}|%{certs}|%{referer}|%{redirect_url}"],
            "body3 0 0 000|||"
        ),
        (["/new", "-e", "http://a.example/", "-w", "|%{referer}"], "body|http://a.example/"),
        (["/old", "--no-location", "-w", "%{redirect_url}"], "movedBASE/new"), (["/old", "-w", "|%{redirect_url}|"], "body||"),
        (["/new", "-w", "%{http_code}%{onerror} %{exitcode} no"], "body200"),
        (["/new", "-z", "1 May 2999", "-w", "%{http_code}%{onerror} no"], "200"),
        (["/bad", "-f", "-w", "%{http_code}%{onerror} %{exitcode} yes"], "404 22 yes"),
        (["/new", "-w", "%{proxy_ssl_verify_result}%{ftp_entry_path}%{http_version}"], "body01.1"),
    ])
    func `variables have curl's values`(_ words: [String], _ text: String) async throws {
        try await withScriptedServer(reply: { request in
            switch request.path {
            case "/old": .redirect(302, to: "/new")
            case "/bad": .status(404)
            default:
                .ok(
                    "body",
                    [("X-A", "1"), ("X-B", "2")]
                        + (request.header("If-Modified-Since") == nil ? [] : [("Last-Modified", "Tue, 02 Apr 2024 10:00:00 GMT")])
                )
            }
        }) { (server) async throws in
            let base = server.url("/").absoluteString.dropLast()
            let result = try await Tool.run(["-s"] + words.dropFirst() + [base + words[0]])
            #expect(result.text == text.replacingOccurrences(of: "BASE", with: base) && result.errors.isEmpty, "\(result.text)")
        }
    }

    @Test func `verbose shows the server's certificate, its address and the TLS version`() async throws {
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok("gold") }) { (server) async throws in
            let address = server.url("/a", host: "localhost").absoluteString
            let port = try #require(server.url("/").port)
            let words = ["-sv", "--cacert", "root.pem", "-4", "-u", "ali:secret", address]
            let result = try await Tool.run(words + ["-w", "%{num_certs}%{certs}"], in: folder)
            for line in [
                #"\* Server certificate:\n\*  subject: .+"#, #"\*  start date: \w+, .* GMT"#, #"\*  expire date: \w+, .* GMT"#,
                #"\*  issuer: .+"#,
                #"\* Connected to localhost \(127\.0\.0\.1\) port \#(port)"#, #"\* SSL connection using TLS 1\.3 / TLS_AES_\w+"#,
            ] {
                #expect(try result.errors.firstMatch(of: Regex(line)) != nil, "\(line)\n\(result.errors)")
            }
            #expect(!result.errors.contains("secret") && !result.errors.contains("unreadable"))
            #expect(try result.text.prefixMatch(of: Regex("gold[1-9]Subject:CN=")) != nil, "\(result.text)")
            #expect(result.text.contains("-----BEGIN CERTIFICATE-----"))
        }
    }
}
