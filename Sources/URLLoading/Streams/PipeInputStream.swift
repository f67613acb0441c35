// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The reading end of a ``StreamPipe``, as a stream for the app.
///
/// Unlike Foundation's own streams, it may be used from several threads concurrently.
final class PipeInputStream: InputStream {
    private let pipe: StreamPipe
    private let events: StreamEvents

    init(_ pipe: StreamPipe) {
        self.pipe = pipe
        events = StreamEvents {
            switch pipe.readable {
            case .bytes: .init(.hasBytesAvailable)
            case .empty: .init([])
            case .end: .init(.endEncountered)
            case .failure(let error): .init(.errorOccurred, error)
            }
        }
        super.init(data: Data())
        events.attach(to: self)
        pipe.setReadingEvents(events)
    }

    deinit { close() }

    /// Calls `work` once, when a read would not block.
    func whenReadable(_ work: @escaping @Sendable () -> Void) { pipe.whenReadable(work) }

    override func open() { events.open() }

    override func close() {
        events.close()
        pipe.closeReading()
    }

    override var hasBytesAvailable: Bool { events.isOpen && pipe.hasBytes }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        guard events.isOpen else { return -1 }
        let count = pipe.read(into: buffer, maxLength: maxLength)
        events.wasUsed(for: .hasBytesAvailable)
        return count
    }

    /// Unsupported: the pipe has no buffer that remains valid until the next read.
    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
    ) -> Bool {
        false
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
