// SPDX-License-Identifier: Apache-2.0

/// The state of a file that is written outside the event loop: which step its thread takes next, and how the writing ends.
///
/// One thread or one pump uses the file at a time. The shell holds the bytes and the completion handlers.
package struct FileSinkMachine: Sendable {
    package enum Event: Hashable, Sendable {
        /// This many bytes were queued for writing.
        case queued(Int)
        /// Queued bytes must be written even if they are fewer than ``batchSize``.
        case flush
        /// The caller completes the file, or keeps it with the bytes written so far.
        case end(End)
        case abort
        case pumpEntered
        case pumpLeft
        /// A pump moved this many bytes into the file.
        case moved(Int64)
        /// A batch was written: the number of bytes that reached the file, and the size of the batch.
        case wrote(Int64, of: Int)
        /// A write failed because the disk is full, or for another reason.
        case failed(isFull: Bool)
        /// The thread asks for its next step.
        case threadIsFree
    }

    package enum End: Hashable, Sendable {
        /// The file is complete.
        case close
        /// The file is kept for another load to continue, even if the disk is full.
        case keep
    }

    package enum Step: Hashable, Sendable {
        case nothing
        /// Starts a thread for the file.
        case start
        /// Writes the queued bytes, or as many of them as can be written at once.
        case write
        /// Closes the file; if the disk was full, with the bytes written so far.
        case close(isFull: Bool)
        /// Reports the outcome of the file again, or that the requested end is impossible.
        case tell
        /// Deletes the file, and closes it if it is open.
        case discard(isOpen: Bool)
        /// Unlinks the failed file, so that other programs find no incomplete file; the file is closed at the end.
        case unlink
        /// The thread stops using the file.
        case leave
    }

    private enum Phase: Hashable {
        case gathering
        case flushing
        /// Nothing more is written.
        case failed(isFull: Bool)
        case aborting(isOpen: Bool)
        case closed
        case gone
    }

    private enum Occupant: Hashable {
        case none
        case thread
        /// `besideThread`: a thread was using the file when the pump entered, and may not have left yet.
        case pump(besideThread: Bool)
    }

    /// The minimum number of queued bytes that are written without a `flush` or an `end`.
    package static let batchSize = 160 << 10

    private var phase = Phase.gathering
    private var occupant = Occupant.none
    /// The requested end, until the thread performs it.
    private var end: End?
    /// Whether the bytes written so far are kept if the disk is full.
    private var keepsWhenFull = false
    /// The number of bytes that are queued or being written; meaningless after a failure.
    package private(set) var outstanding = 0
    package private(set) var written: Int64

    package init(written: Int64) { self.written = written }

    package var isOpen: Bool { ![.aborting(isOpen: false), .closed, .gone].contains(phase) }
    package var isGone: Bool { phase == .gone }
    private var acceptsBytes: Bool { phase == .gathering || phase == .flushing }

    package mutating func keepWhenFull() { keepsWhenFull = true }

    package mutating func handle(_ event: Event) -> Step {
        switch event {
        case .queued(let count):
            guard acceptsBytes else { break }
            outstanding += count
            if outstanding >= Self.batchSize { return start() }
        case .flush:
            guard acceptsBytes, outstanding > 0 else { break }
            phase = .flushing
            return start()
        case .end(let end):
            self.end = end
            return start()
        case .abort:
            if phase != .gone { phase = .aborting(isOpen: isOpen) }
            return start()
        case .pumpEntered: occupant = .pump(besideThread: occupant == .thread)
        case .pumpLeft:
            occupant = occupant == .pump(besideThread: true) ? .thread : .none
            if end != nil || phase == .aborting(isOpen: true) { return start() }
        case .moved(let count): written += count
        case .wrote(let count, let size):
            outstanding -= size
            written += count
        case .failed(let isFull):
            if acceptsBytes { phase = .failed(isFull: isFull) } else if phase == .closed { phase = .gone }
            if !keepsFile { return .unlink }
        case .threadIsFree: return nextStep()
        }
        return .nothing
    }

    private mutating func start() -> Step {
        guard occupant == .none else { return .nothing }
        occupant = .thread
        return .start
    }

    private var keepsFile: Bool { keepsWhenFull && phase == .failed(isFull: true) }

    private mutating func nextStep() -> Step {
        if case .pump = occupant {
            occupant = .pump(besideThread: false)
            return .leave
        }
        switch phase {
        case .aborting(let isOpen):
            phase = .gone
            return .discard(isOpen: isOpen)
        case .failed where end != nil && !keepsFile:
            phase = .gone
            return .discard(isOpen: true)
        case .gathering where end == nil && outstanding < Self.batchSize: break
        case .gathering, .flushing: if outstanding > 0 { return .write }
        case .failed, .closed, .gone: break
        }
        guard let end else {
            occupant = .none
            if phase == .flushing { phase = .gathering }
            return .leave
        }
        self.end = nil
        guard acceptsBytes || keepsFile && end == .keep else { return .tell }
        defer { phase = .closed }
        return .close(isFull: !acceptsBytes)
    }
}
