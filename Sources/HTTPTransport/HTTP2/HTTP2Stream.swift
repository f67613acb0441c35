// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import NIOCore
import TransportMachines

typealias HTTP2Stream = CarriedStream<HTTP2Connection>

extension HTTP2Connection: StreamHost {
    typealias StreamID = UInt32
    typealias Sending = SendWindow
    typealias Outlet = HTTP2BodyOutlet

    static var version: HTTPVersions { .http2 }

    var lastRead: Int64 { liveness.lastRead }

    func makeOutlet(for stream: HTTP2Stream) -> HTTP2BodyOutlet { HTTP2BodyOutlet(stream, of: self) }

    func widenWindow(by change: Int, of stream: HTTP2Stream) { sendWindowUpdate(change, stream: stream.id) }
}

extension CarriedStream<HTTP2Connection> {
    var sendWindow: SendWindow { sending }

    /// Notes that `count` bytes of content were written, with END_STREAM if `ends` is true.
    func sent(_ count: Int, ends: Bool) {
        sending.take(count)
        if ends { hasSentEnd = true }
    }

    /// Widens the window as the server announces; returns false if the window exceeds the maximum.
    func widen(by increment: Int) -> Bool { sending.widen(by: increment) }

    func widen(by change: PeerSettings.WindowChange) -> Bool {
        var window = sending
        return window.widen(by: change.largest) && sending.widen(by: change.total)
    }
}
