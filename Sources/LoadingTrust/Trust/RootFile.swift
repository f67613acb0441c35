// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LibC

/// Reads a file of root certificates: a regular file, or, where that is allowed, a pipe, as of a shell's process substitution.
enum RootFile {
    /// The maximum length of a file in bytes; the system's roots have some 250 KB.
    private static let maximumLength = 16 << 20
    /// How long to wait for the writers of a pipe.
    private static let patience = Duration.seconds(30)

    static func isPipe(_ path: String) -> Bool {
        var facts = stat()
        return stat(path, &facts) == 0 && facts.st_mode & S_IFMT == S_IFIFO
    }

    /// Returns nil if there is no such file, it cannot be read, is too long, or is of another kind.
    ///
    /// A pipe is read until its writers have closed it. `Data(contentsOf:)` does not wait for them.
    static func content(of path: String, mayBePipe: Bool = false) -> Data? {
        func isAllowed(_ facts: stat) -> Bool {
            let kind = facts.st_mode & S_IFMT
            return kind == S_IFREG || mayBePipe && kind == S_IFIFO
        }
        var facts = stat()
        // Another kind of file is not even opened, because that can have effects.
        guard stat(path, &facts) == 0, isAllowed(facts) else { return nil }
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        guard fstat(file, &facts) == 0, isAllowed(facts) else { return nil }
        return content(of: file, isPipe: facts.st_mode & S_IFMT == S_IFIFO)
    }

    private static func content(of file: Int32, isPipe: Bool) -> Data? {
        let deadline = ContinuousClock.now + patience
        var content = Data()
        var piece = [UInt8](repeating: 0, count: 65_536)
        while content.count <= maximumLength {
            let count = read(file, &piece, piece.count)
            if count > 0 {
                content.append(contentsOf: piece[..<count])
                continue
            }
            if count < 0, errno == EINTR { continue }
            // Before the first writer has opened the pipe, it seems to be at its end.
            if count == 0, !isPipe || !content.isEmpty { return content }
            guard count == 0 || errno == EAGAIN else { return nil }
            let left = ContinuousClock.now.duration(to: deadline) / .milliseconds(1)
            var state = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
            let ready = poll(&state, 1, Int32(max(0, left)))
            if ready > 0, state.revents & Int16(POLLIN) == 0 { return content }
            guard ready > 0 || ready < 0 && errno == EINTR else { return nil }
        }
        return nil
    }
}
