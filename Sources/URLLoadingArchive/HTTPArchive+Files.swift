// SPDX-License-Identifier: Apache-2.0

public import Foundation

extension HTTPArchive {
    /// The reason why data could not be read as an archive.
    public struct ReadingError: LocalizedError, Sendable, Equatable, CustomStringConvertible {
        /// One sentence without a period, such as "it is not a HAR archive: log.entries[3].request.url is missing".
        public let description: String

        init(_ description: String) { self.description = description }

        /// The same as ``description``.
        public var errorDescription: String? { description }
    }

    /// Reads an archive file, written by this program or another one.
    ///
    /// - Parameters:
    ///   - url: The file.
    ///   - maximumSize: The maximum size in bytes, by default 256 MiB.
    /// - Throws: ``ReadingError`` if the file is not a HAR archive or is too large; Foundation's error if the file cannot be read.
    public init(contentsOf url: URL, maximumSize: Int = 256 << 20) throws {
        let file = try FileHandle(forReadingFrom: url)
        defer { try? file.close() }
        var data = Data()
        // The file is read in pieces, because the size of a device or a pipe is unknown.
        while data.count <= maximumSize, let piece = try file.read(upToCount: min(1 << 20, maximumSize - data.count + 1)),
            !piece.isEmpty
        {
            data += piece
        }
        guard data.count <= maximumSize else { throw ReadingError("it has more than \(maximumSize) bytes") }
        try self.init(data: data)
    }

    /// Reads an archive from data, written by this program or another one.
    ///
    /// - Parameter data: JSON in UTF-8, with or without a byte order mark.
    /// - Throws: ``ReadingError`` if the data is not a HAR archive.
    public init(data: Data) throws {
        let mark = Data([0xEF, 0xBB, 0xBF])
        do {
            self = try JSONDecoder().decode(HTTPArchive.self, from: data.starts(with: mark) ? Data(data.dropFirst(3)) : data)
        } catch let error as DecodingError {
            throw ReadingError("it is not a HAR archive: " + Self.reason(error))
        } catch {
            throw ReadingError("it is not a HAR archive: it is not JSON")
        }
    }

    /// Encodes the archive as JSON, with its members in alphabetical order.
    ///
    /// - Throws: `EncodingError` if JSON cannot represent a number.
    /// - Returns: UTF-8, with a line feed at the end.
    public func data() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self) + Data("\n".utf8)
    }

    /// Writes the archive atomically, with mode 0600, because even the URLs may be private.
    ///
    /// An existing file is replaced. If the URL names a symbolic link, the link's target is replaced. A special file, such as a
    /// pipe, is written to directly.
    ///
    /// - Parameter url: The file.
    /// - Throws: `POSIXError` if the file cannot be written.
    public func write(to url: URL) throws { try PrivateFile.write(data(), to: url.path) }

    private static func reason(_ error: DecodingError) -> String {
        func place(_ path: [any CodingKey]) -> String {
            let text = path.reduce("") { $0 + ($1.intValue.map { "[\($0)]" } ?? ($0.isEmpty ? "" : ".") + $1.stringValue) }
            return text.isEmpty ? "it" : text
        }
        switch error {
        case .keyNotFound(let key, let context): return "\(place(context.codingPath + [key])) is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            return "\(place(context.codingPath)) has the wrong type"
        case .dataCorrupted(let context):
            return context.codingPath.isEmpty ? "it is not JSON" : "\(place(context.codingPath)) \(context.debugDescription)"
        @unknown default: return "it is not JSON"
        }
    }
}

/// Files that only their owner can read.
package enum PrivateFile {
    /// Writes a file atomically, with mode 0600.
    ///
    /// An existing file is replaced. If the path names a symbolic link, the link's target is replaced. A special file, such as a pipe,
    /// is written to directly.
    ///
    /// - Parameters:
    ///   - data: The content.
    ///   - path: The file.
    /// - Throws: `POSIXError` if the file cannot be written.
    package static func write(_ data: Data, to path: String) throws {
        var facts = stat()
        let exists = stat(path, &facts) == 0
        if exists, facts.st_mode & S_IFMT != S_IFREG { return try fill(open(path, O_WRONLY | O_CLOEXEC), with: data) }
        let target = exists ? URL(fileURLWithPath: path).resolvingSymlinksInPath().path : path
        let aside = "\(target).\(UUID().uuidString)"
        do {
            try fill(open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600), with: data)
            guard rename(aside, target) == 0 else { throw systemError() }
        } catch {
            unlink(aside)
            throw error
        }
    }

    /// Returns who owns an opened file, and who has permission to access it.
    package static func facts(of descriptor: Int32) -> (isRegular: Bool, owner: UInt32, permissions: UInt32)? {
        var facts = stat()
        guard fstat(descriptor, &facts) == 0 else { return nil }
        return (facts.st_mode & S_IFMT == S_IFREG, facts.st_uid, facts.st_mode & 0o777)
    }

    private static func fill(_ descriptor: Int32, with data: Data) throws {
        guard descriptor >= 0 else { throw systemError() }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try file.write(contentsOf: data)
        try file.close()
    }

    private static func systemError() -> POSIXError { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
}
