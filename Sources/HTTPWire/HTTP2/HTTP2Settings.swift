// SPDX-License-Identifier: Apache-2.0

/// The values of one SETTINGS frame (RFC 9113, section 6.5.2); a value is nil if the frame does not contain the setting.
///
/// For a repeated setting, the last value applies, because "the values in the SETTINGS frame MUST be processed in the order they
/// appear" (section 6.5.3). Earlier values that have an effect of their own are kept separately.
package struct HTTP2Settings: Hashable, Sendable {
    /// SETTINGS_HEADER_TABLE_SIZE.
    package var headerTableSize: Int?
    /// The smallest SETTINGS_HEADER_TABLE_SIZE in this frame.
    ///
    /// The next field block must signal this value (RFC 7541, section 4.2).
    package var smallestHeaderTableSize: Int?
    /// SETTINGS_ENABLE_PUSH.
    package var enablePush: Bool?
    /// SETTINGS_MAX_CONCURRENT_STREAMS.
    package var maxConcurrentStreams: Int?
    /// SETTINGS_INITIAL_WINDOW_SIZE.
    package var initialWindowSize: Int?
    /// The largest SETTINGS_INITIAL_WINDOW_SIZE in this frame.
    ///
    /// This value decides whether a window overflowed while the settings of the frame were applied (RFC 9113, section 6.9.2).
    package var largestInitialWindowSize: Int?
    /// SETTINGS_MAX_FRAME_SIZE.
    package var maxFrameSize: Int?
    /// SETTINGS_MAX_HEADER_LIST_SIZE.
    package var maxHeaderListSize: Int?
    /// SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441, section 3).
    package var enableConnectProtocol: Bool?
    /// SETTINGS_NO_RFC7540_PRIORITIES (RFC 9218, section 2.1).
    package var noRFC7540Priorities: Bool?
    /// The number of entries in the frame, including unknown entries.
    package var changeCount = 0

    package init() {}

    /// The maximum window size, and the maximum SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113, section 6.9.1).
    package static let largestWindow = 2_147_483_647
    /// The valid range of SETTINGS_MAX_FRAME_SIZE.
    package static let frameSizes = 16_384...16_777_215

    /// Reads the payload of a frame from the server.
    ///
    /// The length of the payload must be a multiple of six.
    init(fromServer payload: UnsafeRawBufferPointer) throws(HTTP2Failure) {
        var position = 0
        while position &+ 6 <= payload.count {
            let identifier = HTTP2Bytes.uint16(payload, position)
            try take(identifier, HTTP2Bytes.uint32(payload, position &+ 2))
            position &+= 6
        }
    }

    private mutating func take(_ identifier: UInt16, _ value: UInt32) throws(HTTP2Failure) {
        let size = Int(value)
        changeCount += 1
        switch identifier {
        case 0x1:
            headerTableSize = size
            smallestHeaderTableSize = min(size, smallestHeaderTableSize ?? size)
        case 0x2:
            // "A client MUST treat receipt of a SETTINGS frame with SETTINGS_ENABLE_PUSH set to 1 as a connection error" (section 6.5.2).
            guard value == 0 else { throw Self.malformed("the server sent SETTINGS_ENABLE_PUSH with a value other than 0") }
            enablePush = false
        case 0x3: maxConcurrentStreams = size
        case 0x4:
            guard size <= Self.largestWindow else {
                throw HTTP2Failure(
                    code: .flowControlError, message: "SETTINGS_INITIAL_WINDOW_SIZE exceeds the maximum window size")
            }
            initialWindowSize = size
            largestInitialWindowSize = max(size, largestInitialWindowSize ?? size)
        case 0x5:
            guard Self.frameSizes.contains(size) else { throw Self.malformed("SETTINGS_MAX_FRAME_SIZE is out of range") }
            maxFrameSize = size
        case 0x6: maxHeaderListSize = size
        case 0x8:
            guard value <= 1 else { throw Self.malformed("SETTINGS_ENABLE_CONNECT_PROTOCOL is neither 0 nor 1") }
            enableConnectProtocol = value == 1
        case 0x9:
            guard value <= 1 else { throw Self.malformed("SETTINGS_NO_RFC7540_PRIORITIES is neither 0 nor 1") }
            noRFC7540Priorities = value == 1
        // "An endpoint that receives a SETTINGS frame with any unknown or unsupported identifier MUST ignore that setting."
        default: break
        }
    }

    private static func malformed(_ message: String) -> HTTP2Failure { HTTP2Failure(code: .protocolError, message: message) }

    /// Calls a closure with each identifier and value as they are sent.
    func forEachEntry(_ body: (UInt16, UInt32) -> Void) {
        func emit(_ identifier: UInt16, _ value: Int?) {
            if let value { body(identifier, UInt32(clamping: value)) }
        }
        emit(0x1, headerTableSize)
        emit(0x2, enablePush.map { $0 ? 1 : 0 })
        emit(0x3, maxConcurrentStreams)
        emit(0x4, initialWindowSize)
        emit(0x5, maxFrameSize)
        emit(0x6, maxHeaderListSize)
        emit(0x8, enableConnectProtocol.map { $0 ? 1 : 0 })
        emit(0x9, noRFC7540Priorities.map { $0 ? 1 : 0 })
    }
}
