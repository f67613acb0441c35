//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import LoadingModel

/// What is sent and kept, as bytes: in the form of this version, or in that of version 1 for those who know no other.
///
/// The first byte tells the forms apart, so that whatever is read needs no word about its version.
package enum MessageCoding {
    /// Said in the first message of both sides.
    package static let version = 2

    /// What is no file or data as a body, or is longer than the daemon takes, is not sent.
    ///
    /// Hello has the form that every version reads.
    package static func encode(_ message: ClientMessage, version: Int = version) throws(MessageFailure) -> [UInt8] {
        if case .hello = message { return try write(message, limit: FrameReader.limit, version: 1) }
        return try write(message, limit: FrameReader.limit, version: version)
    }

    /// What is longer than a program takes is not sent.
    ///
    /// A refusal has the form that every version reads.
    package static func encode(_ message: DaemonMessage, version: Int = version) throws(MessageFailure) -> [UInt8] {
        if case .refused = message { return try write(message, version: 1) }
        return try write(message, version: version)
    }

    /// Reads what anybody may have written: whatever it is, it does not trap.
    package static func decodeClientMessage(_ bytes: [UInt8]) throws(MessageFailure) -> ClientMessage { try read(bytes) }

    /// Reads what the daemon wrote, with the same care.
    package static func decodeDaemonMessage(_ bytes: [UInt8]) throws(MessageFailure) -> DaemonMessage { try read(bytes) }

    // MARK: What the daemon keeps

    package static func encode(_ order: BackgroundOrder, version: Int = version) throws(MessageFailure) -> [UInt8] {
        try write(order, version: version)
    }

    package static func encode(_ settings: BackgroundSettings, version: Int = version) throws(MessageFailure) -> [UInt8] {
        try write(settings, version: version)
    }

    package static func encode(_ outcome: TaskOutcome, version: Int = version) throws(MessageFailure) -> [UInt8] {
        try write(outcome, version: version)
    }

    /// An app's own response cannot be carried.
    package static func encode(_ response: LoadResponse, version: Int = version) throws(MessageFailure) -> [UInt8] {
        try write(response, version: version)
    }

    package static func decodeOrder(_ bytes: [UInt8]) throws(MessageFailure) -> BackgroundOrder { try read(bytes) }
    package static func decodeSettings(_ bytes: [UInt8]) throws(MessageFailure) -> BackgroundSettings { try read(bytes) }
    package static func decodeOutcome(_ bytes: [UInt8]) throws(MessageFailure) -> TaskOutcome { try read(bytes) }
    package static func decodeResponse(_ bytes: [UInt8]) throws(MessageFailure) -> LoadResponse { try read(bytes) }

    // MARK: The forms

    private static func write<Value: Coded>(
        _ value: Value, limit: Int = FrameReader.programLimit, version: Int
    ) throws(MessageFailure) -> [UInt8] {
        let bytes: [UInt8]
        do {
            bytes = version == 1 ? try JSONForm.write(value) : try BinaryForm.write(value)
        } catch { throw failure(error) }
        guard bytes.count <= limit else { throw .malformed("a message of \(bytes.count) bytes is too long") }
        return bytes
    }

    private static func read<Value: Coded>(_ bytes: [UInt8]) throws(MessageFailure) -> Value {
        do {
            return bytes.first == BinaryForm.mark ? try BinaryForm.read(bytes) : try JSONForm.read(bytes)
        } catch { throw failure(error) }
    }

    private static func failure(_ error: any Error) -> MessageFailure {
        error as? MessageFailure ?? .malformed("it cannot be read")
    }
}
