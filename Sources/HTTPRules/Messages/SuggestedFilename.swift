// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// Creates a file name for a response from the server's proposal and the URL: Apple's `URLResponse.suggestedFilename`.
///
/// The result is always a single path component: no slash, no backslash, no control or direction character, not `.` or `..`, not
/// hidden, at most 255 bytes of UTF-8. Slashes become underscores, as in Apple's implementation.
package enum SuggestedFilename {
    private static let lengthLimit = 255

    /// Tries the `Content-Disposition`, the URL's last path component and its host, in this order, and then uses "unknown".
    ///
    /// A name without an extension gets the extension of the media type.
    package static func make(contentDisposition: String?, url: URL?, mimeType: String?) -> String {
        let fileExtension = mimeType.flatMap(MediaType.fileExtension(for:))
        if let name = contentDisposition.flatMap(ContentDisposition.filename).flatMap(component) {
            return shortened(name, adding: hasExtension(name) ? nil : fileExtension)
        }
        if let name = url.flatMap(lastPathComponent).flatMap(component) {
            return shortened(name, adding: hasExtension(name) ? nil : fileExtension)
        }
        // The dots of a host do not start an extension.
        if let name = url?.host().flatMap(component) { return shortened(name, adding: fileExtension) }
        return shortened("unknown", adding: fileExtension)
    }

    private static func lastPathComponent(_ url: URL) -> String? {
        // The `;type=` of FTP is no part of the name, and `?` is.
        if FTPTarget.isFTP(url), let target = try? FTPTarget(url) {
            let name = target.name ?? target.directories.last { $0 != [UInt8(ascii: "/")] }
            return name.map { String(decoding: $0, as: UTF8.self) }
        }
        let path = url.path(percentEncoded: true).utf8.split(separator: UInt8(ascii: "/"))
        return path.last.map { String(decoding: PercentEncoding.bytes($0), as: UTF8.self) }
    }

    /// Returns the text as a single path component, or nil if nothing remains.
    private static func component(_ text: String) -> String? {
        var scalars = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x2F, 0x5C: scalars.append("_")
            // Control characters, marks that change the writing direction (which can disguise "exe"), and noncharacters.
            case 0...0x1F, 0x7F...0x9F, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF, 0xFFFE, 0xFFFF: continue
            default: scalars.append(scalar)
            }
        }
        // Works on scalars: a dot with a combining mark is a single character that does not equal a dot, but still hides a file.
        var kept = Substring(String(scalars)).unicodeScalars
        while let first = kept.first, first == "." || first.properties.isWhitespace { kept.removeFirst() }
        while let last = kept.last, last == "." || last.properties.isWhitespace { kept.removeLast() }
        return kept.isEmpty ? nil : String(kept)
    }

    private static func hasExtension(_ name: String) -> Bool {
        name.lastIndex(of: ".") != nil
    }

    /// Adds the extension and truncates the name to the limit of file systems, at the end of the stem.
    private static func shortened(_ name: String, adding added: String?) -> String {
        var stem = name[...]
        var suffix = added.map { "." + $0 } ?? ""
        guard name.utf8.count + suffix.utf8.count > lengthLimit else { return name + suffix }
        if added == nil, let dot = name.lastIndex(of: "."), name[dot...].utf8.count <= 32 {
            suffix = String(name[dot...])
            stem = name[..<dot]
        }
        var left = lengthLimit - suffix.utf8.count
        let kept = stem.unicodeScalars.prefix { scalar in
            left -= UTF8.width(scalar)
            return left >= 0
        }
        return String(kept) + suffix
    }
}
