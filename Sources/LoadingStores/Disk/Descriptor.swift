// SPDX-License-Identifier: Apache-2.0

package import LibC

/// A file descriptor that is closed at the end of its lifetime.
package struct Descriptor: ~Copyable {
    package let number: CInt

    /// Opens `path`, relative to `directory`; does not follow a symbolic link and does not wait for the other end of a pipe.
    package init(_ path: String, in directory: CInt = AT_FDCWD, _ flags: CInt, doing: String) throws(StoreFailure) {
        let flags = flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        while true {
            let number = openat(directory, path, flags, 0o600)
            if number >= 0 {
                self.number = number
                return
            }
            let code = errno
            if code != EINTR { throw .system(code, while: doing) }
        }
    }

    deinit { close(number) }

    package func status(doing: String) throws(StoreFailure) -> stat {
        var status = stat()
        guard fstat(number, &status) == 0 else { throw .system(errno, while: doing) }
        return status
    }

    /// Reads the whole file; nil if it is larger than `limit`.
    package func readAll(limit: Int, doing: String) throws(StoreFailure) -> [UInt8]? {
        let expected = Int(clamping: try status(doing: doing).st_size)
        guard expected <= limit else { return nil }
        var bytes: [UInt8] = []
        // Reads one byte more than expected, so that the first read reaches the end.
        var room = expected + 1
        while true {
            var code: CInt = 0
            let before = bytes.count
            let more = [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
                let read = read(number, buffer.baseAddress, buffer.count)
                code = read < 0 ? errno : 0
                count = max(read, 0)
            }
            if code == EINTR { continue }
            guard code == 0 else { throw .system(code, while: doing) }
            if bytes.isEmpty { bytes = more } else { bytes += more }
            guard bytes.count <= limit else { return nil }
            if more.isEmpty || (before == 0 && more.count < room) { return bytes }
            room = 65_536
        }
    }

    /// Writes all of `bytes`, calling `fault` before each piece.
    package func writeAll(_ bytes: [UInt8], pieceSize: Int, doing: String, fault: FileStep.Fault?) throws(StoreFailure) {
        var start = 0
        while start < bytes.count {
            if let failure = fault?(.write) { throw failure }
            let piece = start..<min(start + pieceSize, bytes.count)
            let written = bytes.withUnsafeBytes { write(number, $0.baseAddress.map { $0 + piece.lowerBound }, piece.count) }
            if written < 0 {
                let code = errno
                if code == EINTR { continue }
                throw .system(code, while: doing)
            }
            start += written
        }
    }
}
