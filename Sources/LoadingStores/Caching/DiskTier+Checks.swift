// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Large bodies are verified once before use, so that a damaged entry is a miss even if the damage is at the end.
extension DiskTier {
    func isVerified(_ name: CacheEntryName, _ file: CacheFile, _ preamble: CacheEntryFile.Preamble) -> Bool {
        state.withLock { $0.verified[name] } == BodyCheck.Subject(stamp: file.stamp, preamble: preamble)
    }

    func noteVerified(_ name: CacheEntryName, _ file: CacheFile, _ preamble: CacheEntryFile.Preamble) {
        guard let stamp = file.currentStamp else { return }
        state.withLock { $0.verified.note(name, BodyCheck.Subject(stamp: stamp, preamble: preamble)) }
    }

    /// Runs a check on the queue, one step at a time, so that other work can run in between.
    ///
    /// After the last step, calls `done` on the queue. A damaged entry is removed first. The check stops if the answer is
    /// cancelled.
    func run(_ check: BodyCheck, for answer: PendingAnswer, then done: @escaping @Sendable () -> Void) {
        guard answer.isWanted else { return }
        var check = check
        answer.noteProgress()
        switch check.step() {
        case nil: queue.run(on: .answers) { [self, check] in run(check, for: answer, then: done) }
        case true?:
            noteVerified(check.name, check.file, check.preamble)
            done()
        case false?:
            removeInvalid(check.name, inode: check.file.inode)
            // Runs after the removal, which is already queued.
            queue.run(on: .changes, done)
        }
    }

    /// Records an entry's last use as the modification time of its file, on the upkeep lane.
    ///
    /// The file's new stamp does not invalidate an earlier check of its body.
    func setLastUse(_ name: CacheEntryName, _ lastUse: Double) {
        let path = path(name)
        let known = state.withLock { $0.verified[name] }
        let isUnchanged = known.map { FileTime.stamp(path) == $0.stamp } ?? false
        FileTime.set(path, lastUse)
        guard isUnchanged, let known, let stamp = FileTime.stamp(path), stamp.inode == known.stamp.inode else { return }
        state.withLock { $0.verified.note(name, known, hasStamp: stamp) }
    }
}

/// The large bodies whose checksums were verified.
struct VerifiedBodies: Sendable {
    /// The maximum number of bodies; if more are verified, all are forgotten, and checked again when they are used.
    private static let limit = 4096

    private var subjects: [CacheEntryName: BodyCheck.Subject] = [:]

    subscript(name: CacheEntryName) -> BodyCheck.Subject? { subjects[name] }

    mutating func note(_ name: CacheEntryName, _ subject: BodyCheck.Subject) {
        if subjects.count >= Self.limit { subjects = [:] }
        subjects[name] = subject
    }

    /// Records the new stamp of a verified body, unless its record has changed meanwhile.
    mutating func note(_ name: CacheEntryName, _ subject: BodyCheck.Subject, hasStamp stamp: FileTime.Stamp) {
        if subjects[name] == subject { subjects[name]?.stamp = stamp }
    }

    mutating func forget(_ name: CacheEntryName) { subjects[name] = nil }
}
