// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A form as a request body (RFC 7578).
///
/// Regular files are read while they are sent, and are never held in memory as a whole.
struct FormBody: Sendable {
    enum Piece: Sendable {
        case bytes(Data)
        case file(String, length: Int64)
    }

    let boundary: String
    let pieces: [Piece]
    let length: Int64

    init(_ fields: [FormField]) throws(ToolFailure) {
        let boundary = Self.makeBoundary()
        var pieces: [Piece] = []
        for field in fields {
            let disposition = "form-data; name=\"\(Self.escaped(field.name))\""
            if field.parts.count == 1 {
                try Self.add(field.parts[0], disposition, boundary, to: &pieces)
                continue
            }
            // As in curl and RFC 2388 (section 4.2), several files of one field are parts of a single multipart/mixed part.
            let inner = Self.makeBoundary()
            let head = "Content-Disposition: \(disposition)\r\nContent-Type: multipart/mixed; boundary=\(inner)\r\n"
            pieces.append(.bytes(Data("--\(boundary)\r\n\(head)\r\n".utf8)))
            for part in field.parts {
                try Self.add(part, "attachment", inner, to: &pieces)
            }
            pieces.append(.bytes(Data("--\(inner)--\r\n\r\n".utf8)))
        }
        pieces.append(.bytes(Data("--\(boundary)--\r\n".utf8)))
        self.boundary = boundary
        self.pieces = pieces
        length = pieces.reduce(0) { sum, piece in
            switch piece {
            case .bytes(let data): sum + Int64(data.count)
            case .file(_, let length): sum + length
            }
        }
    }

    func stream() -> InputStream { FormStream(pieces) }

    private static func makeBoundary() -> String {
        String(repeating: "-", count: 24) + UUID().uuidString.replacingOccurrences(of: "-", with: "")
    }

    private static func add(
        _ part: FormField.Part, _ disposition: String, _ boundary: String, to pieces: inout [Piece]
    ) throws(ToolFailure) {
        pieces.append(.bytes(Data("--\(boundary)\r\n\(try head(of: part, disposition))\r\n".utf8)))
        switch part.source {
        case .text(let text): pieces.append(.bytes(Data(text.utf8)))
        case .upload(let path), .content(let path): pieces.append(try file(path))
        }
        pieces.append(.bytes(Data("\r\n".utf8)))
    }

    /// Returns the piece for a file: a regular file is read while it is sent, and a file without an exact length, such as standard
    /// input, is read now.
    private static func file(_ path: String) throws(ToolFailure) -> Piece {
        guard path != "-" else { return .bytes(try InputFile.read(path)) }
        guard access(path, R_OK) == 0 else { throw ToolFailure.system(26, "cannot read \(path)") }
        if let length = InputFile.exactLength(path) { return .file(path, length: length) }
        var isDirectory: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), isDirectory.boolValue {
            throw ToolFailure.system(26, "cannot read \(path)", number: EISDIR)
        }
        return .bytes(try InputFile.read(path))
    }

    /// Returns the head of a part.
    ///
    /// The user's own header fields take precedence over the default ones, but `;type=` takes precedence over the user's
    /// Content-Type field.
    private static func head(of part: FormField.Part, _ disposition: String) throws(ToolFailure) -> String {
        var own: [String] = []
        for header in part.headers {
            switch header {
            case .line(let line): own.append(line)
            case .file(let path): own += try headers(in: path)
            }
        }
        func has(_ name: String) -> Bool { own.contains { $0.lowercased().hasPrefix(name + ":") } }
        var disposition = disposition
        var guessed: String?
        if case .upload(let path) = part.source {
            let name = part.fileName ?? (path == "-" ? "-" : URL(fileURLWithPath: path).lastPathComponent)
            disposition += "; filename=\"\(escaped(name))\""
            guessed = Self.type(of: name) ?? Self.type(of: path) ?? "application/octet-stream"
        } else if let name = part.fileName {
            disposition += "; filename=\"\(escaped(name))\""
            guessed = Self.type(of: name)
        }
        let type = part.type ?? (has("content-type") ? nil : guessed)
        var lines = has("content-disposition") ? [] : ["Content-Disposition: \(disposition)"]
        if let type {
            lines.append("Content-Type: \(type)")
            own.removeAll { $0.lowercased().hasPrefix("content-type:") }
        }
        return (lines + own).map { $0 + "\r\n" }.joined()
    }

    /// Returns the header fields in a file in curl's syntax: lines that begin with `#` are comments, and those that begin with a
    /// space continue the line before.
    private static func headers(in path: String) throws(ToolFailure) -> [String] {
        var headers: [String] = []
        for line in String(decoding: try InputFile.read(path), as: UTF8.self).split(whereSeparator: \.isNewline) {
            if line.first?.isWhitespace == true, !headers.isEmpty {
                headers[headers.count - 1] += line
            } else if line.first != "#", !line.allSatisfy(\.isWhitespace) {
                headers.append(String(line))
            }
        }
        headers = headers.map { $0.trimmingCharacters(in: .whitespaces) }
        if let wrong = headers.first(where: { !FormField.isHeader($0) }) {
            throw ToolFailure(26, "'\(wrong)' in \(path) is not a header: write 'Name: value'")
        }
        return headers
    }

    /// Escapes a name as browsers do (HTML, "multipart/form-data encoding algorithm").
    private static func escaped(_ name: String) -> String {
        name.unicodeScalars.map { ["\"": "%22", "\r": "%0D", "\n": "%0A"][$0] ?? String($0) }.joined()
    }

    /// The media types that curl guesses from a file name extension.
    private static let types = [
        "gif": "image/gif", "jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "svg": "image/svg+xml",
        "txt": "text/plain", "htm": "text/html", "html": "text/html", "pdf": "application/pdf", "xml": "application/xml",
    ]

    private static func type(of name: String) -> String? { types[URL(fileURLWithPath: name).pathExtension.lowercased()] }
}

/// A stream that reads the pieces of a form one after the other.
private final class FormStream: InputStream {
    private let pieces: [FormBody.Piece]
    private var index = 0
    private var offset: Int64 = 0
    private var handle: FileHandle?
    private var status = Stream.Status.notOpen
    private var failure: (any Error)?

    init(_ pieces: [FormBody.Piece]) {
        self.pieces = pieces
        super.init(data: Data())
    }

    override var hasBytesAvailable: Bool { status == .open }
    override var streamStatus: Stream.Status { status }
    override var streamError: (any Error)? { failure }
    override func open() { status = .open }

    override func close() {
        try? handle?.close()
        handle = nil
        status = .closed
    }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        guard maxLength > 0 else { return 0 }
        do {
            while index < pieces.count {
                let data = try next(upTo: maxLength)
                guard data.isEmpty else {
                    data.copyBytes(to: buffer, count: data.count)
                    return data.count
                }
                index += 1
                offset = 0
                try handle?.close()
                handle = nil
            }
            status = .atEnd
            return 0
        } catch {
            failure = error
            status = .error
            return -1
        }
    }

    /// Returns the next bytes of the current piece, or no bytes at its end.
    private func next(upTo count: Int) throws -> Data {
        switch pieces[index] {
        case .bytes(let data):
            let rest = data.dropFirst(Int(offset)).prefix(count)
            offset += Int64(rest.count)
            return rest
        case .file(let path, let length):
            guard offset < length else { return Data() }
            let file = try handle ?? FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            handle = file
            let wanted = min(Int64(count), length - offset)
            guard let data = try file.read(upToCount: Int(wanted)), !data.isEmpty else {
                throw ToolFailure(26, "\(path) became shorter while it was sent")
            }
            offset += Int64(data.count)
            return data
        }
    }
}
