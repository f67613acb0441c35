// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// A block of PEM text (RFC 7468), with the headers of OpenSSL's old encrypted keys (RFC 1421).
struct PEMBlock {
    var label: String
    var headers: [String: String]
    var bytes: [UInt8]

    var isCertificate: Bool { label == "CERTIFICATE" || label == "X509 CERTIFICATE" }

    var isEncrypted: Bool { headers["Proc-Type"]?.hasSuffix("ENCRYPTED") ?? false }

    /// Returns all blocks of a text, or nil if the text has no block.
    ///
    /// Text between blocks is ignored.
    ///
    /// "Parsers SHOULD ignore whitespace and other non-base64 characters" (section 2). A block without an end is ignored.
    static func blocks(in data: Data) -> [PEMBlock]? {
        let begin = "-----BEGIN "
        guard data.contains(0x2D) else { return nil }
        var blocks: [PEMBlock] = []
        var label: String?
        var lines: [Substring] = []
        let text = String(decoding: data, as: UTF8.self)
        for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            var line = line.trimmed()
            if let current = label, line.hasPrefix("-----END \(current)-----") {
                if let block = PEMBlock(current, lines) { blocks.append(block) }
                label = nil
                // The next block follows on the same line if a file without a final line end was joined with another.
                line = line.dropFirst("-----END \(current)-----".count)
            }
            if line.hasPrefix(begin), line.hasSuffix("-----"), line.utf8.count >= begin.utf8.count + 5 {
                label = String(line.dropFirst(begin.count).dropLast(5))
                lines = []
            } else if label != nil {
                lines.append(line)
            }
        }
        return blocks.isEmpty ? nil : blocks
    }

    private init?(_ label: String, _ lines: [Substring]) {
        self.label = label
        headers = [:]
        var body = lines[...]
        while let line = body.first, let colon = line.firstIndex(of: ":") {
            headers[String(line[..<colon])] = String(line[line.index(after: colon)...].trimmed())
            body = body.dropFirst()
        }
        guard let data = Data(base64Encoded: body.joined(), options: .ignoreUnknownCharacters), !data.isEmpty else { return nil }
        bytes = Array(data)
    }
}

extension Substring {
    fileprivate func trimmed() -> Substring {
        var text = self
        while let first = text.first, first.isWhitespace { text.removeFirst() }
        while let last = text.last, last.isWhitespace { text.removeLast() }
        return text
    }
}
