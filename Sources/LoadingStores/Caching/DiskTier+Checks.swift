//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Synchronization

/// Large bodies are checked once before they are used: what is damaged is a miss, also where the damage is at the end.
extension DiskTier {
    func isKnownSound(_ name: CacheEntryName, _ file: CacheFile, _ preamble: CacheEntryFile.Preamble) -> Bool {
        state.withLock { $0.sound[name] } == BodyCheck.Subject(stamp: file.stamp, preamble: preamble)
    }

    func noteSound(_ name: CacheEntryName, _ file: CacheFile, _ preamble: CacheEntryFile.Preamble) {
        guard let stamp = file.currentStamp else { return }
        state.withLock { $0.sound.note(name, BodyCheck.Subject(stamp: stamp, preamble: preamble)) }
    }

    /// On the queue, one step at a time, so that other work comes in between; `done` is called there once it is known, and what
    /// is damaged removed, unless nobody waits for the answer any more.
    func run(_ check: BodyCheck, for answer: PendingAnswer, then done: @escaping @Sendable () -> Void) {
        guard answer.isWanted else { return }
        var check = check
        answer.noteStep()
        switch check.step() {
        case nil: queue.run(on: .answers) { [self, check] in run(check, for: answer, then: done) }
        case true?:
            noteSound(check.name, check.file, check.preamble)
            done()
        case false?:
            removeUnfit(check.name, inode: check.file.inode)
            // Behind the removal.
            queue.run(on: .changes, done)
        }
    }

    /// On the lane for upkeep.
    ///
    /// Writes down when an entry was used last: in the time of its file, which says nothing of its body then.
    func setLastUse(_ name: CacheEntryName, _ lastUse: Double) {
        let path = path(name)
        let known = state.withLock { $0.sound[name] }
        let isUnchanged = known.map { FileTime.stamp(path) == $0.stamp } ?? false
        FileTime.set(path, lastUse)
        guard isUnchanged, let known, let stamp = FileTime.stamp(path), stamp.inode == known.stamp.inode else { return }
        state.withLock { $0.sound.note(name, known, hasStamp: stamp) }
    }
}

/// Large bodies that were found to be what was stored.
struct SoundBodies: Sendable {
    /// Beyond so many, all are forgotten: a body is checked again then.
    private static let limit = 4096

    private var subjects: [CacheEntryName: BodyCheck.Subject] = [:]

    subscript(name: CacheEntryName) -> BodyCheck.Subject? { subjects[name] }

    mutating func note(_ name: CacheEntryName, _ subject: BodyCheck.Subject) {
        if subjects.count >= Self.limit { subjects = [:] }
        subjects[name] = subject
    }

    /// What was known has another stamp now, unless something else is known by now.
    mutating func note(_ name: CacheEntryName, _ subject: BodyCheck.Subject, hasStamp stamp: FileTime.Stamp) {
        if subjects[name] == subject { subjects[name]?.stamp = stamp }
    }

    mutating func forget(_ name: CacheEntryName) { subjects[name] = nil }
}
