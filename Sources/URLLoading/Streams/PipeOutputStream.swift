// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The writing end of a ``StreamPipe``, as a stream for the app.
///
/// Unlike Foundation's own streams, it may be used from several threads concurrently.
final class PipeOutputStream: OutputStream {
    private let pipe: StreamPipe
    private let events: StreamEvents

    init(_ pipe: StreamPipe) {
        self.pipe = pipe
        events = Self.events(of: pipe)
        super.init(toMemory: ())
        connectEvents()
    }

    /// Makes a pipe of unlimited capacity whose bytes are never read; required by Foundation.
    required init(toMemory: ()) {
        pipe = StreamPipe(capacity: .max)
        events = Self.events(of: pipe)
        super.init(toMemory: ())
        connectEvents()
    }

    private static func events(of pipe: StreamPipe) -> StreamEvents {
        StreamEvents {
            switch pipe.writable {
            case .space: .init(.hasSpaceAvailable)
            case .full: .init([])
            case .failure(let error): .init(.errorOccurred, error)
            }
        }
    }

    private func connectEvents() {
        events.attach(to: self)
        pipe.setWritingEvents(events)
    }

    deinit { close() }

    override func open() { events.open() }

    override func close() {
        events.close()
        pipe.closeWriting()
    }

    override var hasSpaceAvailable: Bool { events.isOpen && pipe.hasSpace }

    override func write(_ buffer: UnsafePointer<UInt8>, maxLength: Int) -> Int {
        guard events.isOpen else { return -1 }
        let count = pipe.write(UnsafeBufferPointer(start: buffer, count: max(maxLength, 0)))
        events.wasUsed(for: .hasSpaceAvailable)
        return count
    }

    override var streamStatus: Stream.Status { events.status }
    override var streamError: (any Error)? { events.error }

    override weak var delegate: (any StreamDelegate)? {
        get { events.delegate }
        set { events.delegate = newValue }
    }

    override func property(forKey key: Stream.PropertyKey) -> AnyObject? { nil }
    override func setProperty(_ property: AnyObject?, forKey key: Stream.PropertyKey) -> Bool { false }

    override func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) { events.schedule(in: runLoop, forMode: mode) }
    override func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) { events.remove(from: runLoop, forMode: mode) }
}
