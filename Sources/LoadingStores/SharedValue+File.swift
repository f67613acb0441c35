// SPDX-License-Identifier: Apache-2.0

import Synchronization
import SystemThreads

/// Reading and writing the file. Everything here accesses the disk.
extension SharedValue {
    /// The file's content, compared with the content that was last read or written.
    private enum Found {
        case missing
        case unchanged(FileStamp)
        case other(Content, StoreEnvelope.Header, FileStamp)
        case damaged(String)
        case newer
    }

    /// Reads the file if it was not read before.
    func load() {
        guard !state.withLock({ $0.isLoaded }) else { return }
        refresh(onlyIfNew: true)
    }

    /// Merges what other processes have written since the last read.
    func refresh(onlyIfNew: Bool = false) {
        guard let file else { return }
        let (hasChanged, isDamaged) = fileState.withLock { fileState -> (Bool, Bool) in
            let isLoaded = state.withLock { $0.isLoaded }
            if onlyIfNew, isLoaded { return (false, false) }
            state.withLock { $0.isReloadScheduled = false }
            let look = file.look()
            state.withLock { $0.wasJustChecked = true }
            if isLoaded, state.withLock({ $0.isMemoryOnly || $0.seen == look }) { return (false, false) }
            do throws(StoreFailure) {
                let found = try found(try file.read(), &fileState)
                let isDamaged = if case .damaged = found { true } else { false }
                return (take(found, &fileState), isDamaged)
            } catch {
                if error.isPermanent {
                    giveUp(error, &fileState)
                } else {
                    // The next lookup or write retries, and merges the file's content then.
                    warn("\(error.reason); it will be retried", &fileState)
                    if !isLoaded { _ = markLoaded(.unknown) }
                }
                return (false, false)
            }
        }
        // Setting the file aside requires its lock, so the disk queue does that: possibly at once and on this thread.
        if isDamaged { scheduleSave(after: 0) }
        if hasChanged { callHooks() }
    }

    private func callHooks() {
        for hook in state.withLock({ $0.hooks }) { hook() }
    }

    private func found(_ content: SharedFile.Content, _ fileState: inout FileState) throws(StoreFailure) -> Found {
        switch content {
        case .missing: return .missing
        case .unusable(let reason): return .damaged(reason)
        case .bytes(let bytes, let stamp):
            switch Content.envelope.open(bytes) {
            case .newer: return .newer
            case .damaged: return .damaged("it is damaged")
            case .whole(let header, let start):
                if header == fileState.base { return .unchanged(stamp) }
                guard let content = Content.decoded(bytes, from: start) else { return .damaged("it is damaged") }
                return .other(content, header, stamp)
            }
        }
    }

    /// Combines the content that was found with the pending changes.
    ///
    /// Returns whether the value changed.
    private func take(_ found: Found, _ fileState: inout FileState) -> Bool {
        switch found {
        case .missing:
            // The file was deleted, so the content that came from it is removed.
            let wasThere = fileState.base != nil
            fileState.base = nil
            return wasThere ? install(Content(), .missing) : markLoaded(.missing)
        case .unchanged(let stamp): return markLoaded(.present(stamp))
        case .other(let content, let header, let stamp):
            fileState.base = header
            return install(content, .present(stamp))
        case .damaged(let reason):
            // The content in memory stays. The caller arranges for the file to be set aside.
            warn("\(reason); it is set aside", &fileState)
            _ = markLoaded(file?.look() ?? .missing)
            fileState.base = nil
            return false
        case .newer:
            giveUp(.refused("it was written by a newer version"), &fileState)
            return false
        }
    }

    private func markLoaded(_ seen: SharedFile.Look) -> Bool {
        state.withLock { state in
            state.isLoaded = true
            state.seen = seen
        }
        return false
    }

    private func install(_ disk: Content, _ seen: SharedFile.Look) -> Bool {
        // Lookups continue during the merge, and changes made in the meantime are applied afterwards.
        let (memory, pending, isFirst) = state.withLock { state in
            state.frozenCount = state.pending.count
            return (state.content, state.pending, !state.isLoaded)
        }
        var merged = Content.merged(disk: disk, memory: memory, pending: pending)
        let hasChanged = !isFirst && !merged.isSame(as: memory)
        state.withLock { state in
            state.frozenCount = 0
            merged.apply(Array(state.pending.dropFirst(pending.count)))
            state.content = merged
            state.isLoaded = true
            state.seen = seen
        }
        return hasChanged
    }

    private func warn(_ reason: String, _ fileState: inout FileState) {
        guard fileState.warned.insert(reason).inserted, let file else { return }
        StoreWarnings.warn("\(Content.title) in \(file.path): \(reason)")
    }

    /// Continues in memory only.
    private func giveUp(_ failure: StoreFailure, _ fileState: inout FileState) {
        if failure != .killed { warn("\(failure.reason); they are kept in memory only", &fileState) }
        state.withLock { state in
            state.isLoaded = true
            state.isMemoryOnly = true
            state.pending = []
        }
    }

    private func scheduleSave(after seconds: Double) {
        let shouldSave = state.withLock { state in
            guard !state.isSaveScheduled, !state.isMemoryOnly else { return false }
            state.isSaveScheduled = true
            return true
        }
        if shouldSave { queue.run(on: .values, after: seconds) { self.save() } }
    }

    /// Writes the pending changes; runs on the disk queue, or at exit.
    func save() {
        state.withLock { state in
            state.isSaveScheduled = false
            if !state.pending.isEmpty { state.nextSave = Monitor.clock + pause }
        }
        guard let file, state.withLock({ $0.isLoaded && !$0.isMemoryOnly }) else { return }
        guard fileState.withLock({ hasToWrite($0) }) else { return }
        do throws(StoreFailure) {
            // Takes the file's lock before `fileState`, so that readers do not wait for another process that holds the file's lock.
            let locked = try file.lock()
            let hasChanged = try fileState.withLock { (fileState) throws(StoreFailure) in try write(locked, &fileState) }
            if hasChanged { callHooks() }
        } catch {
            let retry = fileState.withLock { failed(error, &$0) }
            if let retry { scheduleSave(after: retry) }
        }
    }

    private func hasToWrite(_ fileState: FileState) -> Bool {
        state.withLock { !$0.pending.isEmpty || fileState.base == nil && $0.seen != .missing }
    }

    /// Handles a failed write; returns after how many seconds to retry, or nil for no retry.
    private func failed(_ error: StoreFailure, _ fileState: inout FileState) -> Double? {
        state.withLock { $0.frozenCount = 0 }
        if error.isPermanent {
            giveUp(error, &fileState)
            return nil
        }
        warn("\(error.reason); it will be retried", &fileState)
        fileState.failures += 1
        return min(5 * Double(fileState.failures), 60)
    }

    /// Returns whether changes by another process were found.
    private func write(_ locked: borrowing LockedFile, _ fileState: inout FileState) throws(StoreFailure) -> Bool {
        guard hasToWrite(fileState), state.withLock({ !$0.isMemoryOnly }) else { return false }
        if !fileState.hasRemovedLeftovers {
            fileState.hasRemovedLeftovers = true
            locked.removeLeftovers()
        }
        let found = try found(try locked.read(), &fileState)
        if case .damaged(let reason) = found {
            warn("\(reason); it is set aside", &fileState)
            try locked.setAside()
            fileState.base = nil
            _ = markLoaded(.missing)
        } else if case .newer = found {
            throw .refused("it was written by a newer version")
        }
        let hasChanged = if case .damaged = found { false } else { take(found, &fileState) }
        try replace(locked, &fileState)
        fileState.failures = 0
        return hasChanged
    }

    private func replace(_ locked: borrowing LockedFile, _ fileState: inout FileState) throws(StoreFailure) {
        let (content, count, now) = state.withLock { state in
            state.frozenCount = state.pending.count
            return (state.content, state.pending.count, state.now)
        }
        let body = content.encoded(now: now)
        let header = Content.envelope.header(of: body)
        // A change of session cookies, for example, does not change the file's content.
        guard fileState.base.map({ !$0.hasSameBody(as: header) }) ?? (body.count > Content().encoded(now: now).count) else {
            state.withLock { $0.wrote(count) }
            return
        }
        let stamp = try locked.replace(with: Content.envelope.seal(body, header))
        fileState.base = header
        state.withLock { state in
            state.wrote(count)
            state.seen = .present(stamp)
        }
    }
}
