//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import LoadingModel
import NIOCore
package import SystemThreads

/// A regular file that is to be the body of a request, as it was when the request was composed.
///
/// It is not open: uploads wait for connections by the thousand, and the process may open a thousand files in all. Whoever sends it opens
/// it, so that no more files are open than there are connections, and opens it again to send it once more.
package struct BodyFile: Sendable {
    package let path: String
    /// What the request announces.
    package private(set) var length: Int64
    /// Where in the file that begins.
    package private(set) var start: Int64 = 0
    /// What the file was when it was found.
    package let found: FileVersion
    /// Whether its parts go out by sendfile(2), in clear, or through memory, for TLS.
    package var usesSendfile = true
    private let identity: FileSource.Identity
    /// What it has to be whenever it is opened; nil where only its length is announced.
    private let version: FileVersion?

    /// Finds out whether a file can be sent and how long it is, which may take as long as the file system does.
    package static func findNow(path: String, as version: FileVersion? = nil) throws(LoadError) -> BodyFile {
        let source = try FileSource.openNow(path: path)
        defer { source.close() }
        let body = BodyFile(source, as: version)
        try body.check(source)
        return body
    }

    /// A part of the file, which has to be what it was when it was found; nil where it does not have so much.
    package func part(from start: Int64, count: Int64?) -> BodyFile? {
        guard start >= 0, start <= found.size else { return nil }
        let count = count ?? (found.size - start)
        guard count >= 0, count <= found.size - start else { return nil }
        var part = self
        (part.start, part.length) = (start, count)
        return part
    }

    init(_ source: FileSource, as version: FileVersion? = nil) {
        path = source.path
        length = source.length
        found = source.version
        identity = source.identity
        self.version = version
    }

    /// Opens the file off the event loop and answers on it.
    func open(_ room: FileRoom, on loop: any EventLoop, reply: @escaping (Result<FileSource, LoadError>) -> Void) {
        let answer = NIOLoopBound(reply, eventLoop: loop)
        FileWork.submit(at: FilePlace(opening: path)) {
            let result = Result { () throws(LoadError) in try openNow(room: room) }
            loop.execute { answer.value(result) }
        }
    }

    /// Opens the file to send it, if it is still what the request announces.
    ///
    /// One that was put in its place, and is as long, is sent: it is all of one file. One that has grown, as a log does, is not: its beginning would
    /// be no content that the file ever had.
    package func openNow(room: FileRoom? = nil) throws(LoadError) -> FileSource {
        let source = try FileSource.openNow(path: path, room: room)
        try check(source)
        source.usesSendfile = usesSendfile
        return source
    }

    private func check(_ source: FileSource) throws(LoadError) {
        if let version, source.version != version {
            throw LoadError(.cannotOpenFile, "\(path) has changed since its upload was ordered; order it again")
        }
        guard source.length == found.size else {
            throw LoadError(
                .cannotOpenFile, "\(path) changed before it was sent: it has \(source.length) bytes, \(found.size) were announced"
            )
        }
    }

    /// Opens the file for a moment and reads a part of it, which it may have grown behind; what was put in its place is another file.
    func readNow(offset: Int64, count: Int) -> Result<ByteBuffer, LoadError> {
        Result { () throws(LoadError) in try FileSource.openNow(path: path) }.flatMap { source in
            defer { source.close() }
            guard source.identity == identity else {
                return .failure(LoadError(.cannotOpenFile, "reading \(path): another file has taken its place"))
            }
            return source.readNow(offset: offset, count: count)
        }
    }
}
