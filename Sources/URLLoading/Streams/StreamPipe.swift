//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Foundation

/// A pipe of bytes in memory, one way, with an end to write to and an end to read from.
///
/// At each end is a stream of the app (``PipeOutputStream``, ``PipeInputStream``), or an engine that must not wait (``append(_:)``,
/// ``take(upTo:)``). Every function may be called from any thread. What is called back is called with no lock held.
final class StreamPipe: @unchecked Sendable {
    /// What a read would find.
    enum Readable {
        case bytes
        case nothingYet
        case end
        /// The writing end was closed with an error, and all bytes before it were read; or the reading end was closed.
        case failure(any Error)
    }

    /// What a write would find.
    enum Writable {
        case space
        case noSpaceYet
        /// One of the ends was closed.
        case failure(any Error)
    }

    /// How an end of the pipe is.
    private enum End {
        case open
        case closed((any Error)?)

        var isOpen: Bool { if case .open = self { true } else { false } }
    }

    private let capacity: Int
    private let bytesWereRead: @Sendable (Int) -> Void
    private let bytesWereWritten: @Sendable () -> Void

    // `condition` is the lock of all that follows, which makes `@unchecked Sendable` true; threads wait on it for either end.
    private let condition = NSCondition()
    private var bytes = ByteQueue()
    private var writingEnd = End.open
    private var readingEnd = End.open
    /// Called once, when a read would not wait.
    private var waitingReaders: [@Sendable () -> Void] = []
    private weak var readingEvents: StreamEvents?
    private weak var writingEvents: StreamEvents?

    /// Makes a pipe that is open at both ends.
    ///
    /// - Parameters:
    ///   - capacity: How many bytes ``write(_:)`` puts into the pipe before they are read; at least 1.
    ///   - bytesWereRead: Told how many bytes left the pipe, after each read; when the reading end is closed, how many were left in it,
    ///     which may be none.
    ///   - bytesWereWritten: Called after each write, and when the writing end is closed.
    init(
        capacity: Int, bytesWereRead: @escaping @Sendable (Int) -> Void = { _ in },
        bytesWereWritten: @escaping @Sendable () -> Void = {}
    ) {
        self.capacity = max(capacity, 1)
        self.bytesWereRead = bytesWereRead
        self.bytesWereWritten = bytesWereWritten
    }

    // MARK: The writing end

    var writable: Writable {
        locked {
            if case .closed(let error) = writingEnd { return .failure(error ?? Self.brokenPipe) }
            if case .closed(let error) = readingEnd { return .failure(error ?? Self.brokenPipe) }
            return bytes.count < capacity ? .space : .noSpaceYet
        }
    }

    /// A write would take bytes at once.
    var hasSpace: Bool { if case .space = writable { true } else { false } }

    /// Waits until there is room, and puts as many bytes into the pipe as there is room for.
    ///
    /// - Returns: How many; -1 where one of the ends is closed, or is closed meanwhile.
    func write(_ new: UnsafeBufferPointer<UInt8>) -> Int {
        let taken = change { () -> Int in
            while isOpen, !new.isEmpty, bytes.count >= capacity { condition.wait() }
            guard isOpen else { return -1 }
            let taken = min(new.count, max(capacity - bytes.count, 0))
            bytes.append(UnsafeBufferPointer(rebasing: new[..<taken]))
            return taken
        }
        if taken > 0 { tellReader() }
        return taken
    }

    /// Puts all of `data` into the pipe, whatever room there is.
    ///
    /// - Returns: False where one of the ends is closed: nothing was put into it.
    @discardableResult
    func append(_ data: Data) -> Bool {
        let isTaken = change { () -> Bool in
            guard isOpen else { return false }
            data.withUnsafeBytes { bytes.append($0.bindMemory(to: UInt8.self)) }
            return true
        }
        if isTaken, !data.isEmpty { tellReader() }
        return isTaken
    }

    /// Nothing more is written: the reader finds what is in the pipe, and then the end, or `error`.
    ///
    /// The first call counts.
    func closeWriting(error: (any Error)? = nil) {
        let isFirst = change { () -> Bool in
            guard writingEnd.isOpen else { return false }
            writingEnd = .closed(error)
            return true
        }
        guard isFirst else { return }
        tellReader()
        locked { writingEvents }?.look()
    }

    // MARK: The reading end

    var readable: Readable {
        locked {
            if case .closed(let error) = readingEnd { return .failure(error ?? Self.brokenPipe) }
            guard bytes.isEmpty else { return .bytes }
            switch writingEnd {
            case .open: return .nothingYet
            case .closed(nil): return .end
            case .closed(let error?): return .failure(error)
            }
        }
    }

    /// There are bytes to read.
    var hasBytes: Bool { if case .bytes = readable { true } else { false } }

    /// The writing end was closed, and all bytes were read.
    var isDrainedAndClosed: Bool { locked { bytes.isEmpty && !writingEnd.isOpen } }

    /// Waits until there are bytes, and takes as many as there are and `maxLength` allows.
    ///
    /// - Returns: How many; 0 at the end; -1 where the pipe ended by an error, and where the reading end is closed, or is closed meanwhile.
    func read(into target: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        let taken = change { () -> Int in
            while isOpen, maxLength > 0, bytes.isEmpty { condition.wait() }
            guard readingEnd.isOpen else { return -1 }
            if bytes.isEmpty, case .closed(.some) = writingEnd { return -1 }
            return bytes.take(into: UnsafeMutableRawBufferPointer(start: target, count: max(maxLength, 0)))
        }
        if taken > 0 { tellWriter(taken) }
        return taken
    }

    /// Takes up to `count` bytes; empty if there are none.
    func take(upTo count: Int) -> Data {
        let data = change { bytes.take(upTo: count) }
        if !data.isEmpty { tellWriter(data.count) }
        return data
    }

    /// Calls `work` once, when a read would not wait: at once, or on the thread that writes, or closes an end.
    func whenReadable(_ work: @escaping @Sendable () -> Void) {
        let waits = locked { () -> Bool in
            guard isOpen, bytes.isEmpty else { return false }
            waitingReaders.append(work)
            return true
        }
        if !waits { work() }
    }

    /// Nothing more is read: what is in the pipe is dropped, and writing fails, by `error` or as to a broken pipe.
    ///
    /// The first call counts.
    func closeReading(error: (any Error)? = nil) {
        let left = change { () -> Int? in
            guard readingEnd.isOpen else { return nil }
            readingEnd = .closed(error)
            defer { bytes.removeAll() }
            return bytes.count
        }
        guard let left else { return }
        tellWriter(left)
        callWaitingReaders()
        locked { readingEvents }?.look()
    }

    // MARK: Whom it tells

    func tellReading(_ events: StreamEvents) { locked { readingEvents = events } }

    func tellWriting(_ events: StreamEvents) { locked { writingEvents = events } }

    private func tellReader() {
        bytesWereWritten()
        callWaitingReaders()
        locked { readingEvents }?.look()
    }

    private func callWaitingReaders() {
        let readers = locked { () -> [@Sendable () -> Void] in
            defer { waitingReaders = [] }
            return waitingReaders
        }
        for reader in readers { reader() }
    }

    private func tellWriter(_ count: Int) {
        bytesWereRead(count)
        locked { writingEvents }?.look()
    }

    // MARK: Under the lock

    private var isOpen: Bool { writingEnd.isOpen && readingEnd.isOpen }

    private func locked<Value>(_ work: () -> Value) -> Value {
        condition.lock()
        defer { condition.unlock() }
        return work()
    }

    /// Wakes the threads that wait for what `work` changed.
    private func change<Value>(_ work: () -> Value) -> Value {
        locked {
            defer { condition.broadcast() }
            return work()
        }
    }

    private static var brokenPipe: any Error { NSError(domain: NSPOSIXErrorDomain, code: Int(EPIPE)) }
}
