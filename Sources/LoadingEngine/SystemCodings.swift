//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import HTTPRules
package import HTTPTransport
import SystemLibraries

/// The content codings that libraries of the system undo, where they are there: brotli (RFC 7932) and zstd (RFC 8878).
package enum SystemCodings {
    /// In the order in which they are named to servers.
    ///
    /// The first use opens the libraries, which takes a fifth of a millisecond, or as long as a disk does: a session does it on the
    /// thread that makes it, and its first request knows.
    package static let all: [LibraryCoding] = [
        Codec.brotli.map { LibraryCoding(name: "br", isSlow: hasWideWindow, by: $0) },
        Codec.zstandard.map { LibraryCoding(name: "zstd", isFrame: isFrameOfZstandard, by: $0) },
    ].compactMap { $0 }

    /// What requests that say nothing themselves say of the codings that are undone.
    package static let acceptEncoding = DefaultHeaders.acceptEncoding(all.map(\.name))

    /// Windows of brotli of 8 and 16 MiB (RFC 7932, section 9.1): it decodes as far ahead of what is asked for as they reach, and of the one
    /// byte that it takes to repeat another one that often that is 25 ms in a call; of 4 MiB, 6 ms.
    private static func hasWideWindow(_ start: UInt8) -> Bool { start & 1 == 1 && start >> 1 & 7 >= 6 }

    /// A frame, or one to be skipped (RFC 8878, sections 3.1.1 and 3.1.2): formats of before the RFC are none.
    private static func isFrameOfZstandard(_ start: UInt32) -> Bool { start == 0xFD2F_B528 || start & 0xFFFF_FFF0 == 0x184D_2A50 }
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
            case .goesOn: .goesOn
            case .isOver: .isOver
            case .isDamaged(let reason): .failed(.corrupt("\(name) says: \(reason)"))
            case .hasNoMemory: .failed(.outOfMemory)
            }
        self.init(read: step.read, written: step.written, outcome: outcome)
    }
}
