// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An HTTP/2 frame (RFC 9113, section 6) that an ``HTTP2ScriptedServer`` received.
package struct HTTP2Frame: Sendable {
    package enum Kind: UInt8, Sendable, Codable, CaseIterable {
        case data, headers, priority, resetStream, settings, pushPromise, ping, goAway, windowUpdate, continuation
    }

    package struct Flags: OptionSet, Sendable, Codable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let ack = Flags(rawValue: 1)
        package static let endStream = Flags(rawValue: 1)
        package static let endHeaders = Flags(rawValue: 4)
        package static let padded = Flags(rawValue: 8)
        package static let priority = Flags(rawValue: 32)
    }

    /// Error codes (RFC 9113, section 7).
    package enum ErrorCode: UInt32, Sendable, Codable {
        case noError, protocolError, internalError, flowControlError, settingsTimeout, streamClosed, frameSizeError
        case refusedStream, cancel, compressionError, connectError, enhanceYourCalm, inadequateSecurity, http11Required
    }

    /// Settings (RFC 9113, section 6.5.2; RFC 9218, section 2.1).
    package enum Setting: UInt16, Sendable {
        case headerTableSize = 1
        case enablePush, maxConcurrentStreams, initialWindowSize, maxFrameSize, maxHeaderListSize
        case enableConnectProtocol = 8
        case noRFC7540Priorities = 9
    }

    /// The type of the frame; nil for a type that the RFC does not define.
    package let kind: Kind?
    package let flags: Flags
    package let stream: Int
    /// The length of the payload.
    package let length: Int
    /// The error code of RST_STREAM and GOAWAY.
    package let code: UInt32?
    /// The last stream of GOAWAY.
    package let last: Int?
    /// The increment of WINDOW_UPDATE.
    package let increment: Int?
    /// The data of PING, or the debug data of GOAWAY.
    package let data: [UInt8]
    /// The settings of SETTINGS, in order.
    package let settings: [(UInt16, UInt32)]
    /// The number of the connection at the server, counted from 0.
    package let connection: Int

    package var errorCode: ErrorCode? { code.flatMap(ErrorCode.init) }

    /// The last value of a setting.
    package func value(of setting: Setting) -> Int? {
        settings.last { $0.0 == setting.rawValue }.map { Int($0.1) }
    }

    init?(_ event: HTTP2Event) {
        guard let type = event.type, let connection = event.connection else { return nil }
        kind = Kind(rawValue: type)
        flags = Flags(rawValue: event.flags ?? 0)
        stream = event.stream ?? 0
        length = event.length ?? 0
        code = event.code
        last = event.last
        increment = event.increment
        data = Array(event.data ?? Data())
        settings = (event.settings ?? []).compactMap { pair in
            guard let key = pair.first, let value = pair.last else { return nil }
            return (UInt16(truncatingIfNeeded: key), value)
        }
        self.connection = connection
    }
}

extension HTTP2Frame: CustomStringConvertible {
    package var description: String {
        let name = kind.map { "\($0)" } ?? "unknown"
        let code = code.map { " \(errorCode.map { "\($0)" } ?? "code \($0)")" } ?? ""
        return "\(name)(stream \(stream), flags \(flags.rawValue), \(length) bytes\(code)) on \(connection)"
    }
}
