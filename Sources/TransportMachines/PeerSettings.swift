//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPWire

/// What a server said in SETTINGS, and until then what RFC 9113 says (section 6.5.2).
package struct PeerSettings: Sendable {
    /// What the windows of streams that are open change by: at the end of the frame, and at the most in it.
    package struct WindowChange: Hashable, Sendable {
        package var total: Int
        package var largest: Int
    }

    /// Where the server has no limit.
    package static let largestCapacity = 256

    /// Of a new stream.
    package private(set) var window = FlowControl.initialWindow
    package private(set) var frameSize = HTTP2Settings.frameSizes.lowerBound
    /// Of a request's fields; nil where the server has no limit, or has not said it yet.
    package private(set) var listSize: Int?
    /// Whether CONNECT may name a protocol (RFC 8441, section 3).
    package private(set) var allowsExtendedConnect = false
    /// How many streams there may be; nil before the first SETTINGS.
    package private(set) var capacity: Int?

    package init() {}

    /// Takes a frame's word; answers what changes for the streams that are open, and how many there may be, where that is another number.
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
