//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import LoadingModel

/// Encodes messages and stored data, in the current format or in that of version 1 for peers that know no other.
///
/// The first byte distinguishes the formats, so that decoding needs no version.
package enum MessageCoding {
    /// The version in the first message of both sides.
    package static let version = 2

    /// Encodes a message; fails if a body is neither a file nor data, or if the message is longer than the daemon accepts.
    ///
    /// Hello is encoded in the format that every version reads.
    package static func encode(_ message: ClientMessage, version: Int = version) throws(MessageFailure) -> [UInt8] {
        if case .hello = message { return try write(message, limit: FrameReader.limit, version: 1) }
        return try write(message, limit: FrameReader.limit, version: version)
    }

    /// Encodes a message; fails if the message is longer than programs accept.
    ///
    /// A refusal is encoded in the format that every version reads.
    package static func encode(_ message: DaemonMessage, version: Int = version) throws(MessageFailure) -> [UInt8] {
        if case .refused = message { return try write(message, version: 1) }
        return try write(message, version: version)
    }

    /// Decodes untrusted bytes; never traps.
    package static func decodeClientMessage(_ bytes: [UInt8]) throws(MessageFailure) -> ClientMessage { try read(bytes) }

    /// Decodes the daemon's bytes, which are not trusted either; never traps.
    package static func decodeDaemonMessage(_ bytes: [UInt8]) throws(MessageFailure) -> DaemonMessage { try read(bytes) }

    // MARK: The daemon's stored data

    package static func encode(_ order: BackgroundOrder, version: Int = version) throws(MessageFailure) -> [UInt8] {
        try write(order, version: version)
    }

    package static func encode(_ settings: BackgroundSettings, version: Int = version) throws(MessageFailure) -> [UInt8] {
        try write(settings, version: version)
    }

    package static func encode(_ outcome: TaskOutcome, version: Int = version) throws(MessageFailure) -> [UInt8] {
        try write(outcome, version: version)
    }

    /// Encodes a response; fails for one that the app created itself.
    package static func encode(_ response: LoadResponse, version: Int = version) throws(MessageFailure) -> [UInt8] {
        try write(response, version: version)
    }

    /// Encodes terms in version 1, which is JSON, so that people can read the file.
    package static func encode(_ terms: TransferTerms) throws(MessageFailure) -> [UInt8] { try write(terms, version: 1) }

    package static func decodeTerms(_ bytes: [UInt8]) throws(MessageFailure) -> TransferTerms { try read(bytes) }
    package static func decodeOrder(_ bytes: [UInt8]) throws(MessageFailure) -> BackgroundOrder { try read(bytes) }
    package static func decodeSettings(_ bytes: [UInt8]) throws(MessageFailure) -> BackgroundSettings { try read(bytes) }
    package static func decodeOutcome(_ bytes: [UInt8]) throws(MessageFailure) -> TaskOutcome { try read(bytes) }
    package static func decodeResponse(_ bytes: [UInt8]) throws(MessageFailure) -> LoadResponse { try read(bytes) }

    // MARK: Formats

    private static func write<Value: Coded>(
        _ value: Value, limit: Int = FrameReader.programLimit, version: Int
    ) throws(MessageFailure) -> [UInt8] {
        let bytes: [UInt8]
        do {
            bytes = version == 1 ? try JSONFormat.write(value) : try BinaryFormat.write(value)
        } catch { throw failure(error) }
        guard bytes.count <= limit else { throw .malformed("a message of \(bytes.count) bytes is too long") }
        return bytes
    }

    private static func read<Value: Coded>(_ bytes: [UInt8]) throws(MessageFailure) -> Value {
        do {
            return bytes.first == BinaryFormat.mark ? try BinaryFormat.read(bytes) : try JSONFormat.read(bytes)
        } catch { throw failure(error) }
    }

    private static func failure(_ error: any Error) -> MessageFailure {
        error as? MessageFailure ?? .malformed("it cannot be read")
    }
}
