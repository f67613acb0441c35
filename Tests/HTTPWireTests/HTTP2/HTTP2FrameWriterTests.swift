// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

@Suite struct `Written HTTP/2 frames` {
    private func written(_ length: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0x23, count: length)
        let count = bytes.withUnsafeMutableBytes { write($0) }
        #expect(count == length)
        return bytes
    }

    @Test func `the preface is as in the RFC`() {
        let preface = HTTP2Frames.preface
        #expect(preface.utf8CodeUnitCount == 24)
        #expect("\(preface)" == "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    }

    @Test func `each frame is written as in the RFC`() {
        var settings = HTTP2Settings()
        settings.headerTableSize = 4_096
        settings.enablePush = false
        settings.maxConcurrentStreams = 100
        settings.initialWindowSize = 1 << 20
        settings.maxFrameSize = 16_384
        settings.maxHeaderListSize = 262_144
        settings.enableConnectProtocol = true
        settings.noRFC7540Priorities = true
        #expect(
            written(HTTP2Frames.settingsLength(settings)) { HTTP2Frames.writeSettings(settings, into: $0) }
                == ServerFrames.hexadecimal(
                    """
                    000030 04 00 00000000 0001 00001000 0002 00000000 0003 00000064 0004 00100000 0005 00004000 0006 00040000
                    0008 00000001 0009 00000001
                    """))
        #expect(
            written(HTTP2Frames.settingsLength(HTTP2Settings())) { HTTP2Frames.writeSettings(HTTP2Settings(), into: $0) }
                == ServerFrames.settings)
        #expect(
            written(HTTP2Frames.settingsAcknowledgementLength) { HTTP2Frames.writeSettingsAcknowledgement(into: $0) }
                == ServerFrames.acknowledgement)
        #expect(
            written(HTTP2Frames.pingLength) { HTTP2Frames.writePing(0x0102_0304_0506_0708, isAcknowledgement: true, into: $0) }
                == ServerFrames.hexadecimal("000008 06 01 00000000 0102030405060708"))
        #expect(
            written(HTTP2Frames.resetLength) { HTTP2Frames.writeReset(stream: 7, code: .cancel, into: $0) }
                == ServerFrames.hexadecimal("000004 03 00 00000007 00000008"))
        #expect(
            written(HTTP2Frames.goAwayLength(debug: "why")) {
                HTTP2Frames.writeGoAway(lastStream: 2, code: .compressionError, debug: "why", into: $0)
            } == ServerFrames.hexadecimal("00000b 07 00 00000000 00000002 00000009 776879"))
        #expect(
            written(HTTP2Frames.windowUpdateLength) { HTTP2Frames.writeWindowUpdate(stream: 1, increment: 65_536, into: $0) }
                == ServerFrames.hexadecimal("000004 08 00 00000001 00010000"))
    }

    @Test(arguments: [(0, 4), (1, 4), (4, 4), (5, 4), (8, 4), (9, 4), (12, 4), (13, 5), (100, 7), (7, 100)])
    func `a field block is split into frames within the size limit`(count: Int, size: Int) {
        let block = (0..<count).map { UInt8(truncatingIfNeeded: $0 + 1) }
        for endsStream in [false, true] {
            let length = HTTP2Frames.fieldBlockLength(count, maximumFrameSize: size)
            var bytes = [UInt8](repeating: 0x23, count: 9) + block
            bytes += [UInt8](repeating: 0x23, count: length - bytes.count)
            let written = bytes.withUnsafeMutableBytes {
                HTTP2Frames.writeFieldBlockHeaders(
                    block: count, maximumFrameSize: size, stream: 5, endsStream: endsStream, into: $0)
            }
            #expect(written == length)
            var expected: [UInt8] = []
            var start = 0
            repeat {
                let part = Array(block[start..<min(start + size, count)])
                let isFirst = start == 0
                start += part.count
                let flags: UInt8 = (start == count ? 4 : 0) | (isFirst && endsStream ? 1 : 0)
                expected += ServerFrames.frame(isFirst ? 1 : 9, flags, 5, part)
            } while start < count
            #expect(bytes == expected, "\(count) in frames of \(size)")
        }
    }

    @Test func `error codes have the RFC's names`() {
        let names = (0...14).map { HTTP2ErrorCode(rawValue: $0).name }
        #expect(
            names == [
                "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
                "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
                "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED", "0xe",
            ])
        #expect(HTTP2ErrorCode(rawValue: .max).name == "0xffffffff")
    }
}
