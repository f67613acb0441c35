// SPDX-License-Identifier: Apache-2.0

package import LoadingModel

/// Encodes messages and stored data.
///
/// Hello and refusals are JSON, which every version reads, so that each side learns the other's version, or why it is refused.
/// Data that a daemon of version 1 stored are JSON, too, and are only read. The first byte tells the forms apart.
package enum MessageCoding {
    /// The version in the first message of both sides, and the oldest one that the other side may have.
    package static let version = 2

    /// Encodes a message; fails if a body is neither a file nor data, or if the message is longer than the daemon accepts.
    package static func encode(_ message: ClientMessage) throws(MessageFailure) -> [UInt8] {
        guard case .hello(let version, let role) = message else { return try write(message, limit: FrameReader.limit) }
        return Array(#"{"kind":"hello","role":"\#(role.rawValue)","version":\#(version)}"#.utf8)
    }

    /// Encodes a message; fails if the message is longer than programs accept.
    package static func encode(_ message: DaemonMessage) throws(MessageFailure) -> [UInt8] {
        guard case .refused(let refusal, let text) = message else { return try write(message) }
        return try typed {
            Array(#"{"kind":"refused","refusal":"\#(refusal.rawValue)","text":\#(try JSONFormat.quoted(text))}"#.utf8)
        }
    }

    /// Decodes untrusted bytes; never traps.
    package static func decodeClientMessage(_ bytes: [UInt8]) throws(MessageFailure) -> ClientMessage {
        try message(bytes) { if case .hello = $0 { true } else { false } }
    }

    /// Decodes the daemon's bytes, which are not trusted either; never traps.
    package static func decodeDaemonMessage(_ bytes: [UInt8]) throws(MessageFailure) -> DaemonMessage {
        try message(bytes) { if case .refused = $0 { true } else { false } }
    }

    // MARK: The daemon's stored data

    package static func encode(_ order: BackgroundOrder) throws(MessageFailure) -> [UInt8] { try write(order) }
    package static func encode(_ settings: BackgroundSettings) throws(MessageFailure) -> [UInt8] { try write(settings) }
    package static func encode(_ outcome: TaskOutcome) throws(MessageFailure) -> [UInt8] { try write(outcome) }
    /// Encodes a response; fails for one that the app created itself.
    package static func encode(_ response: LoadResponse) throws(MessageFailure) -> [UInt8] { try write(response) }

    /// The order in the bytes of a ``ClientMessage/submit(_:)``, in the form in which the daemon stores it.
    package static func order(inSubmit bytes: [UInt8]) throws(MessageFailure) -> [UInt8] {
        try typed { try BinaryFormat.value(ofField: 5, in: bytes) }
    }

    /// Encodes terms as JSON, so that people can read the file.
    package static func encode(_ terms: TransferTerms) throws(MessageFailure) -> [UInt8] {
        let hours = terms.hours.map { "\"\($0.text)\"" }.joined(separator: ",")
        let fields = (hours.isEmpty ? [] : ["\"hours\":[\(hours)]"]) + (terms.rate.map { ["\"rate\":\($0)"] } ?? [])
        let bytes = Array("{\(fields.joined(separator: ","))}".utf8)
        // Terms that cannot be read must not replace those that can.
        _ = try decodeTerms(bytes)
        return bytes
    }

    package static func decodeTerms(_ bytes: [UInt8]) throws(MessageFailure) -> TransferTerms { try read(bytes) }
    package static func decodeOrder(_ bytes: [UInt8]) throws(MessageFailure) -> BackgroundOrder { try read(bytes) }
    package static func decodeSettings(_ bytes: [UInt8]) throws(MessageFailure) -> BackgroundSettings { try read(bytes) }
    package static func decodeOutcome(_ bytes: [UInt8]) throws(MessageFailure) -> TaskOutcome { try read(bytes) }
    package static func decodeResponse(_ bytes: [UInt8]) throws(MessageFailure) -> LoadResponse { try read(bytes) }

    // MARK: Forms

    static func isBinary(_ bytes: [UInt8]) -> Bool { bytes.first == BinaryFormat.mark }

    static func write<Value: Coded>(_ value: Value, limit: Int = FrameReader.programLimit) throws(MessageFailure) -> [UInt8] {
        let bytes = try typed { try BinaryFormat.write(value) }
        guard bytes.count <= limit else { throw .malformed("a message of \(bytes.count) bytes is too long") }
        return bytes
    }

    private static func read<Value: Coded>(_ bytes: [UInt8]) throws(MessageFailure) -> Value {
        try typed { isBinary(bytes) ? try BinaryFormat.read(bytes) : try JSONFormat.read(bytes) }
    }

    private static func message<Message: Coded>(
        _ bytes: [UInt8], _ mayBeJSON: (Message) -> Bool
    ) throws(MessageFailure) -> Message {
        let message: Message = try read(bytes)
        guard isBinary(bytes) || mayBeJSON(message) else { throw .malformed("only hello and refusals are JSON") }
        return message
    }

    private static func typed<Value>(_ work: () throws -> Value) throws(MessageFailure) -> Value {
        do { return try work() } catch { throw error as? MessageFailure ?? .malformed("it cannot be read") }
    }
}
