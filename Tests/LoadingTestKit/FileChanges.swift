// SPDX-License-Identifier: Apache-2.0

package import Foundation

#if canImport(Glibc)
import Glibc
#endif

/// Waits for changes of the files in a folder, with inotify.
package final class FileChanges {
    /// Milliseconds between checks of the condition, because inotify does not report changes in subfolders.
    private static let pause: Int32 = 50

    /// Waits until a condition about the files below a folder holds.
    package static func waitBelow(_ folder: URL, until holds: @escaping @Sendable () -> Bool) async throws {
        let isOver = Watched(false)
        Thread.detachNewThread {
            guard let changes = try? FileChanges(below: folder) else { return }
            while !holds(), !isOver.read({ $0 }) { changes.wait(milliseconds: pause) }
            isOver.change { $0 = true }
        }
        defer { isOver.change { $0 = true } }
        try await isOver.value { $0 ? () : nil }
    }

    private let descriptor: Int32

    package init(below folder: URL) throws {
        descriptor = inotify_init1(Int32(IN_CLOEXEC))
        guard descriptor >= 0, inotify_add_watch(descriptor, folder.path, UInt32(IN_MODIFY | IN_CREATE | IN_MOVED_TO)) >= 0 else {
            throw ServerProcess.Failure(description: "inotify: errno \(errno)")
        }
    }

    deinit { close(descriptor) }

    /// Waits for a change; returns false if the other end of a pipe is closed first, or after a timeout.
    @discardableResult
    package func wait(orEndOf pipe: Int32 = -1, milliseconds: Int32 = -1) -> Bool {
        var events = [pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0), pollfd(fd: pipe, events: 0, revents: 0)]
        while poll(&events, 2, milliseconds) < 0, errno == EINTR {}
        guard events[0].revents != 0 else { return false }
        var buffer = [UInt8](repeating: 0, count: 4096)
        return read(descriptor, &buffer, buffer.count) > 0
    }
}
