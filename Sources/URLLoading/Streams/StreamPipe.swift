// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// A one-way pipe of bytes in memory, with a writing end and a reading end.
///
/// Each end is used by a stream of the app (``PipeOutputStream``, ``PipeInputStream``), or by an engine, which must not block
/// (``append(_:)``, ``take(upTo:)``). All functions may be called from any thread. Callbacks are called without a lock.
final class StreamPipe: @unchecked Sendable {
    /// What a read would do now.
    enum Readable {
        case bytes
        case empty
        case end
        /// The writing end was closed with an error and all bytes were read, or the reading end was closed.
        case failure(any Error)
    }

    /// What a write would do now.
    enum Writable {
        case space
        case full
        /// One of the ends was closed.
        case failure(any Error)
    }

    /// The state of an end of the pipe.
    private enum End {
        case open
        case closed((any Error)?)

        var isOpen: Bool { if case .open = self { true } else { false } }
    }

    private let capacity: Int
    private let bytesWereRead: @Sendable (Int) -> Void
    private let bytesWereWritten: @Sendable () -> Void

    // `condition` is the lock that guards all properties below, which makes `@unchecked Sendable` correct. Blocked threads wait on
    // `condition`.
    private let condition = NSCondition()
    private var bytes = ByteQueue()
    private var writingEnd = End.open
    private var readingEnd = End.open
    /// Closures to call once, when a read would not block.
    private var waitingReaders: [@Sendable () -> Void] = []
    private weak var readingEvents: StreamEvents?
    private weak var writingEvents: StreamEvents?

    /// Makes a pipe that is open at both ends.
    ///
    /// - Parameters:
    ///   - capacity: The number of bytes that ``write(_:)`` stores before some are read; at least 1.
    ///   - bytesWereRead: Called after each read, with the number of bytes read. Also called when the reading end is closed, with
    ///     the number of bytes discarded, which can be 0.
    ///   - bytesWereWritten: Called after each write, and when the writing end is closed.
    init(
        capacity: Int, bytesWereRead: @escaping @Sendable (Int) -> Void = { _ in },
        bytesWereWritten: @escaping @Sendable () -> Void = {}
    ) {
        self.capacity = max(capacity, 1)
        self.bytesWereRead = bytesWereRead
        self.bytesWereWritten = bytesWereWritten
    }

    // MARK: Writing end

    var writable: Writable {
        locked {
            if case .closed(let error) = writingEnd { return .failure(error ?? Self.brokenPipe) }
            if case .closed(let error) = readingEnd { return .failure(error ?? Self.brokenPipe) }
            return bytes.count < capacity ? .space : .full
        }
    }

    /// Whether a write would not block.
    var hasSpace: Bool { if case .space = writable { true } else { false } }

    /// Blocks until there is space, and stores as many bytes as fit.
    ///
    /// - Returns: The number of bytes; -1 if one of the ends is closed, or is closed while waiting.
    func write(_ new: UnsafeBufferPointer<UInt8>) -> Int {
        let taken = change { () -> Int in
            while isOpen, !new.isEmpty, bytes.count >= capacity { condition.wait() }
            guard isOpen else { return -1 }
            let taken = min(new.count, max(capacity - bytes.count, 0))
            bytes.append(UnsafeBufferPointer(rebasing: new[..<taken]))
            return taken
        }
        if taken > 0 { notifyReader() }
        return taken
    }

    /// Stores all of `data`, even if it exceeds the capacity.
    ///
    /// - Returns: False if one of the ends is closed, so that nothing was stored.
    @discardableResult
    func append(_ data: Data) -> Bool {
        let isTaken = change { () -> Bool in
            guard isOpen else { return false }
            data.withUnsafeBytes { bytes.append($0.bindMemory(to: UInt8.self)) }
            return true
        }
        if isTaken, !data.isEmpty { notifyReader() }
        return isTaken
    }

    /// Closes the writing end; the reader gets the remaining bytes, and then the end of the stream, or `error`.
    ///
    /// Only the first call has an effect.
    func closeWriting(error: (any Error)? = nil) {
        let isFirst = change { () -> Bool in
            guard writingEnd.isOpen else { return false }
            writingEnd = .closed(error)
            return true
        }
        guard isFirst else { return }
        notifyReader()
        locked { writingEvents }?.wakeIfDue()
    }

    // MARK: Reading end

    var readable: Readable {
        locked {
            if case .closed(let error) = readingEnd { return .failure(error ?? Self.brokenPipe) }
            guard bytes.isEmpty else { return .bytes }
            switch writingEnd {
            case .open: return .empty
            case .closed(nil): return .end
            case .closed(let error?): return .failure(error)
            }
        }
    }

    /// Whether there are bytes to read.
    var hasBytes: Bool { if case .bytes = readable { true } else { false } }

    /// Whether the writing end was closed and all bytes were read.
    var isDrainedAndClosed: Bool { locked { bytes.isEmpty && !writingEnd.isOpen } }

    /// Blocks until there are bytes, and takes at most `maxLength` of them.
    ///
    /// - Returns: The number of bytes; 0 at the end; -1 if the pipe ended with an error, or the reading end is closed, or is closed
    ///   while waiting.
    func read(into target: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        let taken = change { () -> Int in
            while isOpen, maxLength > 0, bytes.isEmpty { condition.wait() }
            guard readingEnd.isOpen else { return -1 }
            if bytes.isEmpty, case .closed(.some) = writingEnd { return -1 }
            return bytes.take(into: UnsafeMutableRawBufferPointer(start: target, count: max(maxLength, 0)))
        }
        if taken > 0 { notifyWriter(taken) }
        return taken
    }

    /// Takes at most `count` bytes without blocking; returns empty data if there are none.
    func take(upTo count: Int) -> Data {
        let data = change { bytes.take(upTo: count) }
        if !data.isEmpty { notifyWriter(data.count) }
        return data
    }

    /// Calls `work` as soon as a read would not block: immediately, or on the thread that writes or closes an end.
    func whenReadable(_ work: @escaping @Sendable () -> Void) {
        let waits = locked { () -> Bool in
            guard isOpen, bytes.isEmpty else { return false }
            waitingReaders.append(work)
            return true
        }
        if !waits { work() }
    }

    /// Closes the reading end; the remaining bytes are discarded, and writes fail with `error` or `EPIPE`.
    ///
    /// Only the first call has an effect.
    func closeReading(error: (any Error)? = nil) {
        let left = change { () -> Int? in
            guard readingEnd.isOpen else { return nil }
            readingEnd = .closed(error)
            defer { bytes.removeAll() }
            return bytes.count
        }
        guard let left else { return }
        notifyWriter(left)
        callWaitingReaders()
        locked { readingEvents }?.wakeIfDue()
    }

    // MARK: Notifications

    func setReadingEvents(_ events: StreamEvents) { locked { readingEvents = events } }

    func setWritingEvents(_ events: StreamEvents) { locked { writingEvents = events } }

    private func notifyReader() {
        bytesWereWritten()
        callWaitingReaders()
        locked { readingEvents }?.wakeIfDue()
    }

    private func callWaitingReaders() {
        let readers = locked { () -> [@Sendable () -> Void] in
            defer { waitingReaders = [] }
            return waitingReaders
        }
        for reader in readers { reader() }
    }

    private func notifyWriter(_ count: Int) {
        bytesWereRead(count)
        locked { writingEvents }?.wakeIfDue()
    }

    // MARK: Locking

    private var isOpen: Bool { writingEnd.isOpen && readingEnd.isOpen }

    private func locked<Value>(_ work: () -> Value) -> Value {
        condition.lock()
        defer { condition.unlock() }
        return work()
    }

    /// Runs `work` with the lock held, and wakes the threads that wait for a change.
    private func change<Value>(_ work: () -> Value) -> Value {
        locked {
            defer { condition.broadcast() }
            return work()
        }
    }

    private static var brokenPipe: any Error { NSError(domain: NSPOSIXErrorDomain, code: Int(EPIPE)) }
}
