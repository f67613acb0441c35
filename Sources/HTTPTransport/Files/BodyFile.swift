// SPDX-License-Identifier: Apache-2.0

package import LoadingModel
import NIOCore
package import SystemThreads

/// A regular file that is the body of a request, as it was when the request was created.
///
/// The file is not kept open: thousands of uploads may be waiting for connections, but a process can often open only about a
/// thousand files. The file is opened when it is sent, and opened again for a retry, so that there are no more open files than
/// connections.
package struct BodyFile: Sendable {
    package let path: String
    /// The length that the request announces.
    package private(set) var length: Int64
    /// The offset of the body in the file.
    package private(set) var start: Int64 = 0
    /// The state of the file when the request was created.
    package let found: FileVersion
    /// Whether the file is sent with sendfile(2); false for TLS, which needs the bytes in memory.
    package var usesSendfile = true
    private let identity: FileSource.Identity
    /// The state that the file must have whenever it is opened; nil if only its length matters.
    private let version: FileVersion?

    /// Checks that a file can be sent, and determines its length; the call may block on the file system.
    ///
    /// A file whose size is not that of its content is read now, because the length of a body is announced before it is sent. Its
    /// version says nothing about its content.
    package static func findNow(path: String, as version: FileVersion? = nil) throws(LoadError) -> OutgoingBody {
        let source = try FileSource.openNow(path: path)
        defer { source.close() }
        guard source.isSizeExact else { return .data(try source.readAllNow()) }
        let body = BodyFile(source, as: version)
        try body.check(source)
        return .file(body)
    }

    /// Returns a range of the file, or nil if the range is beyond the end; opening the range fails if the file's length has
    /// changed.
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

    /// Opens the file on another thread, and replies on the event loop.
    func open(_ room: FileReservation, on loop: any EventLoop, reply: @escaping (Result<FileSource, LoadError>) -> Void) {
        let answer = NIOLoopBound(reply, eventLoop: loop)
        FileWork.submit(at: FilePlace(opening: path)) {
            let result = Result { () throws(LoadError) in try openNow(room: room) }
            loop.execute { answer.value(result) }
        }
    }

    /// Opens the file for sending, if the file still has the length that it had when the request was created.
    ///
    /// Unless a version is required, a file that replaced the original and has the same length is sent, because it is a complete
    /// file. A file that has grown, such as a log, is not sent: its beginning alone may be content that the file never had.
    package func openNow(room: FileReservation? = nil) throws(LoadError) -> FileSource {
        let source = try FileSource.openNow(path: path, room: room)
        try check(source)
        source.usesSendfile = usesSendfile
        return source
    }

    private func check(_ source: FileSource) throws(LoadError) {
        if let version, source.version != version {
            throw LoadError(.cannotOpenFile, "\(path) has changed since its upload was created; create the upload again")
        }
        guard source.length == found.size else {
            throw LoadError(
                .cannotOpenFile, "\(path) changed before it was sent: it has \(source.length) bytes instead of \(found.size)"
            )
        }
    }

    /// Opens the file temporarily and reads a range of it.
    ///
    /// The file may have grown, but must not have been replaced.
    func readNow(offset: Int64, count: Int) -> Result<ByteBuffer, LoadError> {
        Result { () throws(LoadError) in try FileSource.openNow(path: path) }.flatMap { source in
            defer { source.close() }
            guard source.identity == identity else {
                return .failure(LoadError(.cannotOpenFile, "reading \(path): the file was replaced by another one"))
            }
            return source.readNow(offset: offset, count: count)
        }
    }
}
