// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// A media type: the value of `Content-Type` (RFC 9110, section 8.3.1).
package struct MediaType: Hashable, Sendable {
    /// `type/subtype` in lowercase: Apple's `URLResponse.mimeType`.
    package let mimeType: String
    /// The character encoding in lowercase: Apple's `textEncodingName`.
    package let charset: String?
    /// The separator of the parts of a multipart body (RFC 2046, section 5.1.1).
    package let boundary: String?

    /// Returns nil if type and subtype are not both tokens.
    ///
    /// If a line contains several types, the first one counts.
    package init?(_ field: String) {
        let bytes = Array(field.utf8)[...]
        let end = bytes.firstIndex { $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: ",") } ?? bytes.endIndex
        let type = ASCII.trimmed(bytes[..<end])
        let halves = type.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard halves.count == 2, halves.allSatisfy({ !$0.isEmpty && $0.allSatisfy(ASCII.isTokenCharacter) }) else { return nil }
        mimeType = String(decoding: type.map(ASCII.lowercased), as: UTF8.self)
        let parameters = FieldParameters(bytes[end...])
        charset = parameters.first("charset").flatMap { $0.isEmpty ? nil : $0.lowercased() }
        boundary = parameters.first("boundary").flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Returns the usual file extension for a type, for the most commonly downloaded types.
    ///
    /// Nil for any other type and for `application/octet-stream`, which is unspecific.
    package static func fileExtension(for mimeType: String) -> String? {
        extensions[mimeType.lowercased()]
    }

    /// Returns the type of files with an extension, or nil if the extension is unknown.
    ///
    /// If there are several types, the first type in alphabetical order is returned.
    package static func mimeType(forPathExtension pathExtension: String) -> String? { types[pathExtension.lowercased()] }

    private static let types: [String: String] = {
        let other = ["htm": "text/html", "jpg": "image/jpeg", "yml": "application/yaml"]
        return extensions.reduce(into: other) { types, entry in
            types[entry.value] = min(types[entry.value] ?? entry.key, entry.key)
        }
    }()

    private static let extensions: [String: String] = [
        "text/plain": "txt", "text/html": "html", "text/css": "css", "text/csv": "csv", "text/xml": "xml",
        "text/javascript": "js", "text/markdown": "md", "text/calendar": "ics", "text/vcard": "vcf", "text/rtf": "rtf",
        "application/javascript": "js", "application/json": "json", "application/xml": "xml", "application/xhtml+xml": "xhtml",
        "application/pdf": "pdf", "application/rtf": "rtf", "application/zip": "zip", "application/gzip": "gz",
        "application/x-gzip": "gz", "application/x-tar": "tar", "application/x-bzip2": "bz2", "application/x-xz": "xz",
        "application/zstd": "zst", "application/x-7z-compressed": "7z", "application/vnd.rar": "rar",
        "application/java-archive": "jar", "application/wasm": "wasm", "application/sql": "sql", "application/yaml": "yaml",
        "application/atom+xml": "atom", "application/rss+xml": "rss", "application/ld+json": "jsonld",
        "application/epub+zip": "epub", "application/msword": "doc", "application/vnd.ms-excel": "xls",
        "application/vnd.ms-powerpoint": "ppt",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
        "application/vnd.oasis.opendocument.text": "odt", "application/vnd.oasis.opendocument.spreadsheet": "ods",
        "application/vnd.debian.binary-package": "deb", "application/x-rpm": "rpm",
        "application/x-apple-diskimage": "dmg", "application/x-iso9660-image": "iso",
        "image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp", "image/avif": "avif",
        "image/heic": "heic", "image/svg+xml": "svg", "image/tiff": "tiff", "image/bmp": "bmp", "image/x-icon": "ico",
        "image/vnd.microsoft.icon": "ico",
        "audio/mpeg": "mp3", "audio/mp4": "m4a", "audio/aac": "aac", "audio/ogg": "ogg", "audio/wav": "wav", "audio/flac": "flac",
        "video/mp4": "mp4", "video/mpeg": "mpeg", "video/quicktime": "mov", "video/webm": "webm", "video/x-matroska": "mkv",
        "font/ttf": "ttf", "font/otf": "otf", "font/woff": "woff", "font/woff2": "woff2",
    ]
}
