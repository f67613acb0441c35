//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import LoadingModel
import NIOCore

/// A file that was sent as the request's body: what changed meanwhile is neither the one version nor the other, whatever the server makes of it.
struct SentFile {
    private enum State {
        /// There is no file, or it was found unchanged.
        case settled
        /// The kernel may still send from the file's own pages: it is looked at when the answer shows that they have arrived.
        case waitsForHead(FileSource)
        /// It is being looked at; until then the answer has no end.
        case lookedAt
    }

    private var state = State.settled

    var isSettled: Bool { if case .settled = state { true } else { false } }
    var isLookedAt: Bool { if case .lookedAt = state { true } else { false } }

    mutating func waitForHead(_ source: FileSource) { state = .waitsForHead(source) }
    mutating func look() { state = .lookedAt }
    mutating func settle() { state = .settled }

    /// The file that waits for the head, which is here.
    var waiting: FileSource? { if case .waitsForHead(let source) = state { source } else { nil } }
}

extension Exchange {
    /// The file went out, as far as it will.
    ///
    /// - Parameters:
    ///   - source: The file.
    ///   - isShared: Whether the kernel was given its pages, and not a copy.
    func sent(_ source: FileSource, isShared: Bool) {
        guard !isOver else { return }
        if isShared, !hasHead { bodyFile.waitForHead(source) } else { look(at: source) }
    }

    /// Looks at the file that waits for the head, which is here.
    func lookAtBodyFile() {
        if let source = bodyFile.waiting { look(at: source) }
    }

    private func look(at source: FileSource) {
        bodyFile.look()
        source.lookAgain(on: control.loop) { [self] failure in
            guard bodyFile.isLookedAt else { return }
            bodyFile.settle()
            if let failure { failAtEnd(failure) } else { control.wake() }
        }
    }
}
