// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
package import LoadingModel
package import NIOCore
import Synchronization
import SystemThreads

/// A regular file that a load reads from beginning to end.
///
/// If the process has few such files and the budget (`FileBudget`) permits it, the file is kept open, so that a replacement is not
/// read instead. Any other file is opened for each part: thousands of file loads may start at a time, but a process can often open
/// only about a thousand files.
package final class LoadedFile: Sendable {
    /// The maximum number of files that are kept open.
    package static let maximumOpen = 64

    private static let openCount = Atomic(0)

    private let file: BodyFile
    /// Nil if the file is opened for each part.
    private let source: FileSource?

    /// The length; nil if it is unknown before the end, because the file system states no exact size.
    package let length: Int64?

    private init(_ source: FileSource, isKeptOpen: Bool) {
        file = BodyFile(source)
        length = source.isSizeExact ? source.length : nil
        self.source = isKeptOpen ? source : nil
    }

    deinit {
        if source != nil { Self.openCount.subtract(1, ordering: .relaxed) }
    }

    /// Opens the file; may block on the file system.
    package static func openNow(path: String) throws(LoadError) -> LoadedFile {
        guard openCount.add(1, ordering: .relaxed).newValue <= maximumOpen, let room = FileBudget.shared.take(.half) else {
            openCount.subtract(1, ordering: .relaxed)
            let source = try FileSource.openNow(path: path)
            defer { source.close() }
            return LoadedFile(source, isKeptOpen: false)
        }
        do {
            return LoadedFile(try FileSource.openNow(path: path, room: room), isKeptOpen: true)
        } catch {
            openCount.subtract(1, ordering: .relaxed)
            throw error
        }
    }

    /// Reads a part off the event loop, and replies on the event loop.
    ///
    /// Without a known length, the part may be shorter, or empty after the end.
    package func read(
        offset: Int64, count: Int, on loop: any EventLoop, reply: @escaping (Result<ByteBuffer, LoadError>) -> Void
    ) {
        if let source { return source.read(offset: offset, count: count, on: loop, reply: reply) }
        let answer = NIOLoopBound(reply, eventLoop: loop)
        FileWork.submit(at: FilePlace(opening: file.path)) { [self] in
            let result = readNow(offset: offset, count: count)
            loop.execute { answer.value(result) }
        }
    }

    /// Reads a part like ``read(offset:count:on:reply:)``; may block on the disk.
    package func readNow(offset: Int64, count: Int) -> Result<ByteBuffer, LoadError> {
        source?.readNow(offset: offset, count: count) ?? file.readNow(offset: offset, count: count)
    }
}
