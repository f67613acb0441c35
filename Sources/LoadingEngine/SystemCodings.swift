// SPDX-License-Identifier: Apache-2.0

import HTTPRules
package import HTTPTransport
import SystemLibraries

/// The content codings that installed system libraries can decode: brotli (RFC 7932) and zstd (RFC 8878).
package enum SystemCodings {
    /// The codings, in the order in which `Accept-Encoding` lists them.
    ///
    /// The first access opens the libraries, which takes 0.2 ms plus the time of reading them from disk. The thread that creates
    /// a session makes this access, before the session's first request.
    package static let all: [LibraryCoding] = [
        Codec.brotli.map { LibraryCoding(name: "br", isSlow: hasWideWindow, by: $0) },
        Codec.zstandard.map { LibraryCoding(name: "zstd", isFrame: isZstandardFrame, by: $0) },
    ].compactMap { $0 }

    /// The `Accept-Encoding` of requests that do not set the field.
    package static let acceptEncoding = DefaultHeaders.acceptEncoding(all.map(\.name))

    /// Whether the first byte of brotli data announces a window of 8 or 16 MiB (RFC 7932, section 9.1), for which the decoder is
    /// slow.
    ///
    /// One call decodes up to a whole window ahead of the requested output. For data that repeat one byte, this takes 25 ms; with
    /// a window of 4 MiB, it takes 6 ms.
    private static func hasWideWindow(_ start: UInt8) -> Bool { start & 1 == 1 && start >> 1 & 7 >= 6 }

    /// Whether the data start with a zstd frame or skippable frame (RFC 8878, sections 3.1.1 and 3.1.2).
    ///
    /// Formats older than the RFC are not supported.
    private static func isZstandardFrame(_ start: UInt32) -> Bool { start == 0xFD2F_B528 || start & 0xFFFF_FFF0 == 0x184D_2A50 }
}

extension LibraryCoding {
    fileprivate init(
        name: String, isFrame: (@Sendable (UInt32) -> Bool)? = nil, isSlow: @escaping @Sendable (UInt8) -> Bool = { _ in false },
        by codec: Codec
    ) {
        self.init(name: name, isFrame: isFrame, isSlow: isSlow) {
            Codec.Decoder(codec).map { decoder in { Step(decoder.decode($0, into: $1), of: name) } }
        }
    }
}

extension LibraryCoding.Step {
    fileprivate init(_ step: Codec.Step, of name: String) {
        let outcome: Outcome =
            switch step.outcome {
            case .continues: .continues
            case .isOver: .isOver
            case .isDamaged(let reason): .failed(.corrupt("\(name): \(reason)"))
            case .hasNoMemory: .failed(.outOfMemory)
            }
        self.init(read: step.read, written: step.written, outcome: outcome)
    }
}
