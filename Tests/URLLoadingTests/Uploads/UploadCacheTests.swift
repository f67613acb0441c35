// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Resumed uploads invalidate the cache entry of their URL (RFC 9111, section 4.4).
@Suite(.timeLimit(.minutes(2)), .everyVersion)
struct UploadCacheTests {
    private static let content = Data(ScriptedFile.pattern(200_000, seed: 15))

    private static func state(_ offset: Int, _ isComplete: Bool) -> [(String, String)] {
        [
            ("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", isComplete ? "?1" : "?0"),
            ("Upload-Offset", "\(offset)"),
        ]
    }

    /// Either part of the body is still missing, or only the final response was lost.
    @Test(arguments: [1000, 200_000]) func `an interrupted upload invalidates the cache entry of its URL`(
        offset: Int
    ) async throws {
        let isWhole = offset == Self.content.count
        try await withScriptedServer(
            early: { request in
                guard request.method == "PUT" else { return nil }
                return [
                    .head(104, [("Upload-Draft-Interop-Version", "8"), ("Location", "/uploads/1")]), .awaitBody(offset), .close,
                ]
            },
            reply: { request in
                switch request.method {
                case "HEAD": return .bare(204, Self.state(offset, isWhole))
                case "PATCH": return .ok("stored", Self.state(Self.content.count, true))
                default: return .ok("version \(request.order)", [("Cache-Control", "max-age=600")])
                }
            },
            test: { server in
                try await withSession { session in
                    let url = server.url("/document")
                    let (first, _) = try await session.data(from: url)
                    #expect(try await session.data(from: url).0 == first)
                    let (_, response) = try await session.upload(for: URLRequest(url, method: "PUT"), from: Self.content)
                    #expect((response as? HTTPURLResponse)?.statusCode == (isWhole ? 204 : 200))
                    #expect(try await session.data(from: url).0 != first)
                }
            })
    }
}
