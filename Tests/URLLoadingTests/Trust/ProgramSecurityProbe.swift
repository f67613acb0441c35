// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Loads the URLs in the environment of its own process, and reports the outcomes.
@Suite(.enabled(if: SeparateProcess.isCurrentSuite("ProgramSecurityProbe")))
struct ProgramSecurityProbe {
    @Test func `loads the URLs in its environment`() async throws {
        let report = try #require(ProgramRun.report)
        let configuration = URLSessionConfiguration.ephemeral
        if ProgramRun.environment[ProgramRun.strict] != nil { configuration.appTransportSecurity = [:] }
        configuration.connectionProxyDictionary = [
            "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": Int(ProgramRun.environment[ProgramRun.proxyKey] ?? "") ?? 0,
        ]
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        var outcomes: [String] = []
        for text in (ProgramRun.environment[ProgramRun.urlsKey] ?? "").split(separator: " ") {
            do {
                outcomes.append(try await session.text(try #require(URL(string: String(text)))))
            } catch let error as URLError {
                outcomes.append("\(error.errorCode)")
            }
        }
        try Data(outcomes.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: report))
    }
}
