//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

extension HTTPArchive {
    /// Why a file is not read as an archive.
    public struct ReadingError: LocalizedError, Sendable, Equatable, CustomStringConvertible {
        /// One sentence without a full stop, as in "it is no HAR: log.entries[3].request.url is missing".
        public let description: String

        init(_ description: String) { self.description = description }

        /// The same.
        public var errorDescription: String? { description }
    }

    /// Reads a file that this or another program wrote.
    ///
    /// - Parameters:
    ///   - url: The file.
    ///   - maximumSize: The most bytes that it may have: 256 MiB.
    /// - Throws: ``ReadingError`` where it is no HAR or too large; Foundation's error where it cannot be read.
    public init(contentsOf url: URL, maximumSize: Int = 256 << 20) throws {
        let file = try FileHandle(forReadingFrom: url)
        defer { try? file.close() }
        var data = Data()
        // A device or a pipe does not say how much there is.
        while data.count <= maximumSize, let piece = try file.read(upToCount: min(1 << 20, maximumSize - data.count + 1)),
            !piece.isEmpty
        {
            data += piece
        }
        guard data.count <= maximumSize else { throw ReadingError("it has more than \(maximumSize) bytes") }
        try self.init(data: data)
    }

    /// Reads the bytes of a file that this or another program wrote.
    ///
    /// - Parameter data: JSON in UTF-8, with or without a byte order mark.
    /// - Throws: ``ReadingError`` where they are no HAR.
    public init(data: Data) throws {
        let mark = Data([0xEF, 0xBB, 0xBF])
        do {
            self = try JSONDecoder().decode(HTTPArchive.self, from: data.starts(with: mark) ? Data(data.dropFirst(3)) : data)
        } catch let error as DecodingError {
            throw ReadingError("it is no HAR: " + Self.reason(error))
        } catch {
            throw ReadingError("it is no HAR: it is no JSON")
        }
    }

    /// The archive as JSON, with its members in alphabetical order.
    ///
    /// - Throws: `EncodingError` where JSON cannot represent a number.
    /// - Returns: UTF-8, with a line feed at the end.
    public func data() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self) + Data("\n".utf8)
    }

    /// Writes the archive: whole or not at all, and for its owner alone (mode 0600), as even its URLs may be private.
    ///
    /// What was there is replaced; a link stays, and what it leads to is replaced. What is no file, as a pipe, is written to.
    ///
    /// - Parameter url: The file.
    /// - Throws: `POSIXError`, where it cannot be written.
    public func write(to url: URL) throws {
        let data = try data()
        var facts = stat()
        let isThere = stat(url.path, &facts) == 0
        if isThere, facts.st_mode & S_IFMT != S_IFREG {
            return try Self.fill(open(url.path, O_WRONLY | O_CLOEXEC), with: data)
        }
        let target = isThere ? url.resolvingSymlinksInPath().path : url.path
        let aside = "\(target).\(UUID().uuidString)"
        do {
            try Self.fill(open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600), with: data)
            guard rename(aside, target) == 0 else { throw Self.systemError() }
        } catch {
            unlink(aside)
            throw error
        }
    }

    private static func fill(_ descriptor: Int32, with data: Data) throws {
        guard descriptor >= 0 else { throw systemError() }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try file.write(contentsOf: data)
        try file.close()
    }

    private static func systemError() -> POSIXError { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }

    private static func reason(_ error: DecodingError) -> String {
        func place(_ path: [any CodingKey]) -> String {
            let text = path.reduce("") { $0 + ($1.intValue.map { "[\($0)]" } ?? ($0.isEmpty ? "" : ".") + $1.stringValue) }
            return text.isEmpty ? "it" : text
        }
        switch error {
        case .keyNotFound(let key, let context): return "\(place(context.codingPath + [key])) is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            return "\(place(context.codingPath)) is of another kind"
        case .dataCorrupted(let context):
            return context.codingPath.isEmpty ? "it is no JSON" : "\(place(context.codingPath)) \(context.debugDescription)"
        @unknown default: return "it is no JSON"
        }
    }
}
