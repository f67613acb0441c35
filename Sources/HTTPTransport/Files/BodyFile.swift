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

/// A regular file that is to be the body of a request, as it was when the request was composed.
///
/// It is not open: uploads wait for connections by the thousand, and the process may open a thousand files in all. Whoever sends it opens
/// it, so that no more files are open than there are connections, and opens it again to send it once more.
package struct BodyFile: Sendable {
    package let path: String
    /// What the request announces.
    package let length: Int64
    /// Whether its parts go out by sendfile(2), in clear, or through memory, for TLS.
    package var usesSendfile = true
    private let identity: FileSource.Identity

    /// Finds out whether a file can be sent and how long it is, which may take as long as the file system does.
    package static func findNow(path: String) throws(LoadError) -> BodyFile {
        let source = try FileSource.openNow(path: path)
        defer { source.close() }
        return BodyFile(source)
    }

    init(_ source: FileSource) {
        path = source.path
        length = source.length
        identity = source.identity
    }

    /// Opens the file off the event loop and answers on it.
    func open(on loop: any EventLoop, reply: @escaping (Result<FileSource, LoadError>) -> Void) {
        let answer = NIOLoopBound(reply, eventLoop: loop)
        FileWork.submit(at: FilePlace(opening: path)) {
            let result = Result { () throws(LoadError) in try openNow() }
            loop.execute { answer.value(result) }
        }
    }

    /// Opens the file, if it can still be what the request announces.
    ///
    /// One that has grown, as a log does, is sent as far as was announced. One that was put in its place must be as long: the beginning of a
    /// longer one would be a body that nobody wrote.
    package func openNow() throws(LoadError) -> FileSource {
        let source = try FileSource.openNow(path: path)
        guard source.length == length || (source.length > length && source.identity == identity) else {
            throw LoadError(
                .requestBodyStreamExhausted, "sending \(path): it has \(source.length) bytes, \(length) were announced")
        }
        source.usesSendfile = usesSendfile
        return source
    }

    /// Opens the file for a moment and reads a part of it; what was put in its place is another file.
    func readNow(offset: Int64, count: Int) -> Result<ByteBuffer, LoadError> {
        Result { () throws(LoadError) in try openNow() }.flatMap { source in
            defer { source.close() }
            guard source.identity == identity else {
                return .failure(LoadError(.cannotOpenFile, "reading \(path): another file has taken its place"))
            }
            return source.readNow(offset: offset, count: count)
        }
    }
}
