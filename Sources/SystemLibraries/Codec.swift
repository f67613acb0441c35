//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CSystemLibraries

/// Undoes a content coding by a C library: brotli (RFC 7932) by libbrotlidec, zstd (RFC 8878) by libzstd.
///
/// Sendable because the C side never changes what it points to once it is made, and never frees it.
package struct Codec: @unchecked Sendable {
    private typealias Load = (UnsafeMutableRawPointer?, UnsafeMutablePointer<UnsafePointer<CChar>?>?) -> OpaquePointer?

    /// Nil where the system does not have it.
    ///
    /// Opened the first time, which blocks while the linker works.
    package static let brotli = open("libbrotlidec.so.1", csl_brotli_load)
    /// Nil where the system does not have it, or one before 1.4.
    package static let zstandard = open("libzstd.so.1", csl_zstd_load)

    private let functions: OpaquePointer

    private static func open(_ name: String, _ load: Load) -> Codec? {
        guard let opened = SystemLibrary.open([name]) else { return nil }
        var missing: UnsafePointer<CChar>?
        guard let functions = load(opened.handle, &missing) else {
            opened.reject(missing: missing.map { String(cString: $0) } ?? "")
            return nil
        }
        return Codec(functions: functions)
    }

    /// What a call came to.
    package struct Step: Sendable, Hashable {
        package enum Outcome: Sendable, Hashable {
            case goesOn
            /// The stream of brotli is over, or a frame of zstd, after which another may begin.
            case isOver
            /// Not what the coding demands, in the library's words.
            case isDamaged(String)
            case hasNoMemory
        }

        package var read: Int
        package var written: Int
        package var outcome: Outcome
    }

    /// What is known of one body, by one thread at a time.
    ///
    /// Windows beyond what HTTP allows are damage: 16 MiB of brotli (RFC 7932, section 9.1), 8 MiB of zstd (RFC 9659, section 3).
    package final class Decoder {
        private let functions: OpaquePointer
        private let decoder: UnsafeMutableRawPointer

        /// Nil where there is no memory for it.
        package init?(_ codec: Codec) {
            guard let decoder = csl_decoder_create(codec.functions) else { return nil }
            functions = codec.functions
            self.decoder = decoder
        }

        deinit { csl_decoder_free(functions, decoder) }

        /// Reads what is needed to fill the room, or all there is.
        ///
        /// Where it has filled the room there may be more, without more to read. Not to be called after damage.
        package func decode(_ bytes: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) -> Step {
            var decoding = csl_decoding()
            csl_decoder_decode(
                functions, decoder, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count,
                room.baseAddress?.assumingMemoryBound(to: UInt8.self), room.count, &decoding
            )
            let outcome: Step.Outcome =
                switch Int(decoding.outcome) {
                case CSL_DECODING_GOES_ON: .goesOn
                case CSL_DECODING_IS_OVER: .isOver
                case CSL_DECODING_HAS_NO_MEMORY: .hasNoMemory
                default: .isDamaged(decoding.reason.map { String(cString: $0) } ?? "")
                }
            return Step(read: decoding.read, written: decoding.written, outcome: outcome)
        }
    }
}
