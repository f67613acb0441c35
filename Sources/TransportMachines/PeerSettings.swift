// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

/// The server's SETTINGS; until the first frame, the defaults of RFC 9113 (section 6.5.2).
package struct PeerSettings: Sendable {
    /// The changes that one frame makes to the windows of open streams: the total change, and the largest change within the frame.
    package struct WindowChange: Hashable, Sendable {
        package var total: Int
        package var largest: Int
    }

    /// The maximum of ``capacity``, which also applies if the server sets no limit.
    package static let largestCapacity = 256

    /// The initial send window of a new stream.
    package private(set) var window = FlowControl.initialWindow
    package private(set) var frameSize = HTTP2Settings.frameSizes.lowerBound
    /// The maximum size of a request's header list; nil if the server has no limit, or has not sent its limit yet.
    package private(set) var listSize: Int?
    /// Whether CONNECT may name a protocol (RFC 8441, section 3).
    package private(set) var allowsExtendedConnect = false
    /// The maximum number of streams; nil before the first SETTINGS.
    package private(set) var capacity: Int?

    package init() {}

    /// Applies a frame.
    ///
    /// Returns the change for open streams, and the maximum number of streams if it changed.
    package mutating func take(_ settings: HTTP2Settings) -> (window: WindowChange?, capacity: Int?) {
        allowsExtendedConnect = settings.enableConnectProtocol ?? allowsExtendedConnect
        frameSize = settings.maxFrameSize ?? frameSize
        listSize = settings.maxHeaderListSize ?? listSize
        let change = settings.initialWindowSize.map { size in
            WindowChange(total: size - window, largest: (settings.largestInitialWindowSize ?? size) - window)
        }
        window = settings.initialWindowSize ?? window
        guard settings.maxConcurrentStreams != nil || capacity == nil else { return (change, nil) }
        let allowed = min(settings.maxConcurrentStreams ?? Self.largestCapacity, Self.largestCapacity)
        guard allowed != capacity else { return (change, nil) }
        capacity = allowed
        return (change, allowed)
    }
}
