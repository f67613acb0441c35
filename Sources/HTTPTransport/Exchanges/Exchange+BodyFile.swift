// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import NIOCore

/// A file that was sent as the request's body.
///
/// If the file changed while it was sent, the request fails whatever the response is, because the server received neither version
/// of the file.
struct SentFile {
    private enum State {
        /// There is no file, or it was found unchanged.
        case settled
        /// The kernel may still be sending the file's pages, so the file is checked only after the head of the response has
        /// arrived.
        case waitsForHead(FileSource)
        /// The file is being checked; the response ends only after the check.
        case beingChecked
    }

    private var state = State.settled

    var isSettled: Bool { if case .settled = state { true } else { false } }
    var isBeingChecked: Bool { if case .beingChecked = state { true } else { false } }

    mutating func waitForHead(_ source: FileSource) { state = .waitsForHead(source) }
    mutating func look() { state = .beingChecked }
    mutating func settle() { state = .settled }

    /// The file that is to be checked once the head of the response has arrived.
    var waiting: FileSource? { if case .waitsForHead(let source) = state { source } else { nil } }
}

extension Exchange {
    /// Records that the file was sent, completely or in part.
    ///
    /// - Parameters:
    ///   - source: The file.
    ///   - isShared: Whether the kernel sends the file's pages rather than a copy.
    func sent(_ source: FileSource, isShared: Bool) {
        guard !isOver else { return }
        if isShared, !hasHead { bodyFile.waitForHead(source) } else { look(at: source) }
    }

    /// Checks the file if its check had to wait for the head of the response.
    func checkBodyFile() {
        if let source = bodyFile.waiting { look(at: source) }
    }

    private func look(at source: FileSource) {
        bodyFile.look()
        source.checkUnchanged(on: control.loop) { [self] failure in
            guard bodyFile.isBeingChecked else { return }
            bodyFile.settle()
            if let failure { failAtEnd(failure) } else { control.wake() }
        }
    }
}
