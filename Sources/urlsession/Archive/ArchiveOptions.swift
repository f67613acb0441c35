// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoadingArchive

/// The options for recording a command's loads as an HTTP Archive (HAR).
struct ArchiveOptions: ParsableArguments {
    @Option(
        "--har <file>",
        "Record all requests and responses with their timings in this file (HTTP Archive 1.2), without passwords, tokens and bodies."
    )
    var file: String?

    @Flag("--har-secrets", "With --har: include passwords, tokens and cookie values.")
    var keepsSecrets = false

    @Option("--har-bodies <bytes>", "With --har: include bodies of up to this many bytes; k, M or G may follow.")
    var bodies: ByteCount?

    func validate() throws {
        try refuse(if: file == "-", "--har needs a file.")
        try refuse(if: file == nil && (keepsSecrets || bodies != nil), "--har-secrets and --har-bodies require --har.")
    }

    /// The recorder; nil without `--har`.
    var recorder: ArchiveRecorder? {
        var detail = HTTPArchive.Detail()
        if keepsSecrets { detail.redaction = nil }
        detail.keepsBodies = bodies != nil
        detail.maximumBodySize = bodies.flatMap { Int(exactly: $0.bytes) } ?? 0
        return file.map { ArchiveRecorder.of($0, detail) }
    }

    /// Runs a command's work, and then completes the archive; an empty archive is written first, so that an unwritable file is
    /// reported before anything is loaded.
    func recording(_ work: () async throws -> Void) async throws {
        guard let recorder else { return try await work() }
        try recorder.begin()
        do {
            try await work()
        } catch {
            recorder.finish()
            throw error
        }
        recorder.finish()
        if let failure = recorder.failure { throw failure }
    }
}
