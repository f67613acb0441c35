// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

@Suite(.timeLimit(.minutes(1)), .everyVersion) struct DownloadSpaceTests {
    private final class Progress: NSObject, URLSessionDownloadDelegate, Sendable {
        let written = Watched<Int64>(0)

        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
            totalBytesWritten: Int64,
            totalBytesExpectedToWrite: Int64
        ) {
            written.change { $0 = totalBytesWritten }
        }

        func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {}
    }

    /// Over http, the body is spliced into the file; over TLS, it passes through the process.
    @Test(arguments: [false, true])
    func `a declared Content-Length does not allocate disk space`(isSecure: Bool) async throws {
        let certificates = try TestCertificates.shared.get()
        let count = (8 << 20) + (isSecure ? 70_001 : 70_002)
        let progress = Progress()
        try await withScenario(
            identity: isSecure ? certificates.valid : nil, delegate: progress,
            configure: { $0.tlsTrustRoots = [certificates.root] },
            reply: { _ in
                [
                    .head(200, [("Content-Length", "\(1 << 30)")]),
                    .content([UInt8](repeating: 1, count: count)),
                    .stall,
                ]
            }
        ) { (server, session) async throws in
            let task = session.downloadTask(with: server.url())
            task.resume()
            // Over TLS the last bytes are still buffered.
            let least = Int64(isSecure ? 8 << 20 : count)
            try await progress.written.value { $0 >= least ? () : nil }
            // Reported bytes may not have been written to the file yet.
            let space = try #require(try Self.spaceOfDownload(ofLength: (1 << 20)...count))
            #expect(space <= 20 << 20, "\(space)")
            task.cancel()
        }
    }

    /// The disk space in bytes of an open download file whose length is in `lengths`, or nil if this process has no such file.
    private static func spaceOfDownload(ofLength lengths: ClosedRange<Int>) throws -> Int? {
        for name in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
            let link = "/proc/self/fd/\(name)"
            guard let path = try? FileManager.default.destinationOfSymbolicLink(atPath: link), path.contains("CFNetworkDownload_")
            else { continue }
            var status = stat()
            if stat(link, &status) == 0, lengths ~= Int(status.st_size) { return Int(status.st_blocks) * 512 }
        }
        return nil
    }
}
