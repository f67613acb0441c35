//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
package import LoadingModel

/// Messages, and what the daemon keeps of them, as JSON.
///
/// What has its default is left out, and what is not known is passed over, so that neighbouring versions understand each other.
///
/// Nothing that is read here calls itself, and the decoder is given nothing that ``JSONShape`` has not gone through.
package enum MessageCoding {
    /// Said in the first message of both sides.
    package static let version = 1

    /// The longest JSON of a single value: as long as the longest frame.
    private static let valueLimit = FrameReader.programLimit

    /// What is no file or data as a body, or is longer than the daemon takes, is not sent.
    package static func encode(_ message: ClientMessage) throws(MessageFailure) -> [UInt8] {
        try encode(message, as: WireClientMessage.self, limit: FrameReader.limit)
    }

    /// What is longer than a program takes is not sent.
    package static func encode(_ message: DaemonMessage) throws(MessageFailure) -> [UInt8] {
        if case .transfers(let reports, let request, let isLast) = message,
            let list = TransferListing.encode(reports, request: request, isLast: isLast), list.count <= FrameReader.programLimit
        {
            return list
        }
        return try encode(message, as: WireDaemonMessage.self, limit: FrameReader.programLimit)
    }

    /// Reads what anybody may have written: whatever it is, it does not trap.
    package static func decodeClientMessage(_ bytes: [UInt8]) throws(MessageFailure) -> ClientMessage {
        try decode(bytes, as: WireClientMessage.self)
    }

    /// Reads what the daemon wrote, with the same care.
    package static func decodeDaemonMessage(_ bytes: [UInt8]) throws(MessageFailure) -> DaemonMessage {
        try checkShape(bytes)
        if let list = TransferListing.decode(bytes) { return list }
        return try decodeSound(bytes, as: WireDaemonMessage.self)
    }

    // MARK: What the daemon keeps

    /// An order as it is sent.
    package static func encode(_ order: BackgroundOrder) throws(MessageFailure) -> [UInt8] {
        try encode(order, as: WireOrder.self, limit: valueLimit)
    }

    /// Reads an order that was kept.
    package static func decodeOrder(_ bytes: [UInt8]) throws(MessageFailure) -> BackgroundOrder {
        try decode(bytes, as: WireOrder.self)
    }

    /// Settings as they are sent.
    package static func encode(_ settings: BackgroundSettings) throws(MessageFailure) -> [UInt8] {
        try encode(settings, as: WireSettings.self, limit: valueLimit)
    }

    /// Reads settings that were kept.
    package static func decodeSettings(_ bytes: [UInt8]) throws(MessageFailure) -> BackgroundSettings {
        try decode(bytes, as: WireSettings.self)
    }

    /// An outcome as it is sent.
    package static func encode(_ outcome: TaskOutcome) throws(MessageFailure) -> [UInt8] {
        try encode(outcome, as: WireOutcome.self, limit: valueLimit)
    }

    /// Reads an outcome that was kept.
    package static func decodeOutcome(_ bytes: [UInt8]) throws(MessageFailure) -> TaskOutcome {
        try decode(bytes, as: WireOutcome.self)
    }

    /// An app's own response cannot be carried.
    package static func encode(_ response: LoadResponse) throws(MessageFailure) -> [UInt8] {
        try encode(response, as: WireResponse.self, limit: valueLimit)
    }

    /// Reads a response that was kept.
    package static func decodeResponse(_ bytes: [UInt8]) throws(MessageFailure) -> LoadResponse {
        try decode(bytes, as: WireResponse.self)
    }

    /// A request as it is sent.
    package static func encode(_ request: LoadRequest) throws(MessageFailure) -> [UInt8] {
        try encode(request, as: WireRequest.self, limit: valueLimit)
    }

    /// Reads a request that was kept.
    package static func decodeRequest(_ bytes: [UInt8]) throws(MessageFailure) -> LoadRequest {
        try decode(bytes, as: WireRequest.self)
    }

    // MARK: JSON

    private static func encode<Wire: WireValue>(
        _ model: Wire.Model, as wire: Wire.Type, limit: Int
    ) throws(MessageFailure) -> [UInt8] {
        let data: Data
        do {
            let value = try Wire(model)
            // What the other side would not take is not sent.
            _ = try value.model()
            data = try encoder().encode(value)
        } catch { throw failure(error) }
        guard data.count <= limit else { throw .malformed("a message of \(data.count) bytes is too long") }
        return Array(data)
    }

    private static func decode<Wire: WireValue>(_ bytes: [UInt8], as wire: Wire.Type) throws(MessageFailure) -> Wire.Model {
        try checkShape(bytes)
        return try decodeSound(bytes, as: wire)
    }

    private static func checkShape(_ bytes: [UInt8]) throws(MessageFailure) {
        guard JSONShape.isObject(bytes) else { throw .malformed("it is no JSON, or more than a message has") }
    }

    private static func decodeSound<Wire: WireValue>(
        _ bytes: [UInt8], as wire: Wire.Type
    ) throws(MessageFailure) -> Wire.Model {
        let data = Data(bytes)
        do { return try JSONDecoder().decode(Wire.self, from: data).model() } catch {
            if error is DecodingError, let kind = Wire.unknownKind(in: data) { throw .unknownKind(MessageFailure.excerpt(kind)) }
            throw failure(error)
        }
    }

    private static func encoder() -> JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        return encoder
    }

    private static func failure(_ error: any Error) -> MessageFailure {
        switch error {
        case let failure as MessageFailure: failure
        case DecodingError.keyNotFound(let key, let context): malformed(context.codingPath + [key], "is missing")
        case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
            malformed(context.codingPath, "is of another type")
        case DecodingError.dataCorrupted(let context): malformed(context.codingPath, "cannot be read")
        case EncodingError.invalidValue(_, let context): malformed(context.codingPath, "has a value that cannot be written")
        default: .malformed("it cannot be read")
        }
    }

    private static func malformed(_ path: [any CodingKey], _ fault: String) -> MessageFailure {
        let keys = path.prefix(16).map(\.stringValue)
        return .malformed("\(keys.isEmpty ? "the JSON" : MessageFailure.excerpt(keys.joined(separator: "."))) \(fault)")
    }
}
