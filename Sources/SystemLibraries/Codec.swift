// SPDX-License-Identifier: Apache-2.0

import CSystemLibraries

/// Decodes a content coding with a C library: brotli (RFC 7932) with libbrotlidec, zstd (RFC 8878) with libzstd.
package struct Codec: Sendable {
    /// The decoder for brotli; nil if the library is not installed.
    ///
    /// The library is opened on first use, which blocks while the dynamic linker loads it.
    package static let brotli = SystemLibrary.functions(of: ["libbrotlidec.so.1"], clib_brotli_load).map { Codec(functions: $0) }
    /// The decoder for zstd; nil if the library is not installed, or is older than 1.4.
    package static let zstandard = SystemLibrary.functions(of: ["libzstd.so.1"], clib_zstd_load).map { Codec(functions: $0) }

    private let functions: SystemLibrary.Functions

    /// The result of a call.
    package struct Step: Sendable, Hashable {
        package enum Outcome: Sendable, Hashable {
            case continues
            /// The end of a brotli stream, or of a zstd frame, which another frame may follow.
            case isOver
            /// The input is malformed; the value is the library's error message.
            case isDamaged(String)
            case hasNoMemory
        }

        package var read: Int
        package var written: Int
        package var outcome: Outcome
    }

    /// The state of one body; for use by one thread at a time.
    ///
    /// Windows larger than HTTP allows are treated as damage: more than 16 MiB for brotli (RFC 7932, section 9.1), more than 8 MiB
    /// for zstd (RFC 9659, section 3).
    package final class Decoder {
        private let functions: OpaquePointer
        private let decoder: UnsafeMutableRawPointer

        /// Creates a decoder; returns nil if memory is exhausted.
        package init?(_ codec: Codec) {
            guard let decoder = clib_decoder_create(codec.functions.table) else { return nil }
            functions = codec.functions.table
            self.decoder = decoder
        }

        deinit { clib_decoder_free(functions, decoder) }

        /// Decodes until the buffer is full or all input is read.
        ///
        /// If the buffer is full, there may be more output even without more input. Must not be called after damaged input was
        /// reported.
        package func decode(_ bytes: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) -> Step {
            var decoding = clib_decoding()
            clib_decoder_decode(
                functions, decoder, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count,
                room.baseAddress?.assumingMemoryBound(to: UInt8.self), room.count, &decoding
            )
            let outcome: Step.Outcome =
                switch Int(decoding.outcome) {
                case CLIB_DECODING_GOES_ON: .continues
                case CLIB_DECODING_IS_OVER: .isOver
                case CLIB_DECODING_HAS_NO_MEMORY: .hasNoMemory
                default: .isDamaged(decoding.reason.map { String(cString: $0) } ?? "")
                }
            return Step(read: decoding.read, written: decoding.written, outcome: outcome)
        }
    }
}
