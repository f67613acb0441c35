// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Runs a test over several versions of HTTP, one after the other: its scripted servers speak the version, and `withSession` trusts
/// them.
///
/// On a suite, the trait applies to all tests that have none of their own. A test whose servers receive no request runs once; if they
/// receive one over the first version, the servers of each other version have to receive one, too.
struct VersionsTrait: SuiteTrait, TestTrait, TestScoping {
    var versions: [ScriptedVersion]

    var isRecursive: Bool { true }

    @concurrent func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable @concurrent () async throws -> Void
    ) async throws {
        let innermost = test.traits.compactMap { $0 as? VersionsTrait }.last
        guard ScriptedRun.current == nil, innermost?.versions == versions else { return try await function() }
        for version in versions {
            let run = ScriptedRun(over: version)
            let naming = IssueHandlingTrait.compactMapIssues { issue in
                var issue = issue
                issue.comments.append("over \(version.rawValue)")
                return issue
            }
            try await naming.provideScope(for: test, testCase: testCase) {
                do {
                    try await ScriptedRun.$current.withValue(run) { try await function() }
                } catch is ExpectationFailedError {
                    // It is already recorded.
                } catch {
                    if error is CancellationError { throw error }
                    Issue.record(error)
                }
            }
            guard run.requestCount == 0 else { continue }
            if version == versions.first { break }
            if run.serverCount > 0 { Issue.record("no request arrived over \(version.rawValue)") }
        }
    }
}

extension Trait where Self == VersionsTrait {
    /// Each version once: HTTP/1.1 over TLS, which shares its code with the others, is for tests that name it.
    static var everyVersion: VersionsTrait { VersionsTrait(versions: [.http1, .http2, .http3]) }

    static func over(_ versions: ScriptedVersion...) -> VersionsTrait { VersionsTrait(versions: versions) }
}

extension URLSessionConfiguration {
    /// An ephemeral configuration for the servers of the version that the test runs over.
    static func scripted() throws -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        try configuration.trustVersion()
        return configuration
    }

    /// Trusts the servers of the version that the test runs over.
    func trustVersion() throws {
        guard let version = ScriptedVersion.current, version.isSecure else { return }
        systemTrustRoots = [try TestCertificates.shared.get().root]
        if version == .http3 { connectionOptions.httpVersions = .http3Only }
    }
}
