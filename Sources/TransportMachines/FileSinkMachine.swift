//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// The state of a file that is written off the event loop: which step its thread takes next, and how the file ends.
///
/// One thread or one pump uses the file at a time. The shell holds the bytes and the completion handlers.
package struct FileSinkMachine: Sendable {
    package enum Event: Hashable, Sendable {
        /// This many bytes were queued for writing.
        case brought(Int)
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
        /// Unlinks the failed file, so that no incomplete file is found; it is closed at the end.
        case unlink
        /// The thread leaves the file.
        case leave
    }

    private enum Life: Hashable {
        case gathering
        case flushing
        /// Nothing more is written.
        case failed(isFull: Bool)
        case aborting(isOpen: Bool)
        case closed
        case gone
    }

    private enum Occupant: Hashable {
        case nobody
        case thread
        /// `besideThread`: a thread was using the file when the pump entered, and may not have left yet.
        case pump(besideThread: Bool)
    }

    /// Smaller batches are gathered instead of written.
    package static let batchSize = 160 << 10

    private var life = Life.gathering
    private var occupant = Occupant.nobody
    /// The requested end, until the thread performs it.
    private var end: End?
    /// The bytes written so far are kept if the disk is full.
    private var staysWhenFull = false
    /// Bytes that are queued or being written; meaningless after a failure.
    package private(set) var outstanding = 0
    package private(set) var written: Int64

    package init(written: Int64) { self.written = written }

    package var isOpen: Bool { ![.aborting(isOpen: false), .closed, .gone].contains(life) }
    package var isGone: Bool { life == .gone }
    private var takesBytes: Bool { life == .gathering || life == .flushing }

    package mutating func keepWhenFull() { staysWhenFull = true }

    package mutating func handle(_ event: Event) -> Step {
        switch event {
        case .brought(let count):
            guard takesBytes else { break }
            outstanding += count
            if outstanding >= Self.batchSize { return start() }
        case .flush:
            guard takesBytes, outstanding > 0 else { break }
            life = .flushing
            return start()
        case .end(let end):
            self.end = end
            return start()
        case .abort:
            if life != .gone { life = .aborting(isOpen: isOpen) }
            return start()
        case .pumpEntered: occupant = .pump(besideThread: occupant == .thread)
        case .pumpLeft:
            occupant = occupant == .pump(besideThread: true) ? .thread : .nobody
            if end != nil || life == .aborting(isOpen: true) { return start() }
        case .moved(let count): written += count
        case .wrote(let count, let size):
            outstanding -= size
            written += count
        case .failed(let isFull):
            if takesBytes { life = .failed(isFull: isFull) } else if life == .closed { life = .gone }
            if !stays { return .unlink }
        case .threadIsFree: return nextStep()
        }
        return .nothing
    }

    private mutating func start() -> Step {
        guard occupant == .nobody else { return .nothing }
        occupant = .thread
        return .start
    }

    private var stays: Bool { staysWhenFull && life == .failed(isFull: true) }

    private mutating func nextStep() -> Step {
        if case .pump = occupant {
            occupant = .pump(besideThread: false)
            return .leave
        }
        switch life {
        case .aborting(let isOpen):
            life = .gone
            return .discard(isOpen: isOpen)
        case .failed where end != nil && !stays:
            life = .gone
            return .discard(isOpen: true)
        case .gathering where end == nil && outstanding < Self.batchSize: break
        case .gathering, .flushing: if outstanding > 0 { return .write }
        case .failed, .closed, .gone: break
        }
        guard let end else {
            occupant = .nobody
            if life == .flushing { life = .gathering }
            return .leave
        }
        self.end = nil
        guard takesBytes || stays && end == .keep else { return .tell }
        defer { life = .closed }
        return .close(isFull: !takesBytes)
    }
}
