// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Synchronization

/// A piece of a body from `--data`, `--data-urlencode` and related options; all kinds are joined in command-line order.
struct DataPiece: Sendable {
    enum Kind: Sendable { case plain, binary, raw, encoded }

    let kind: Kind
    let text: String
    let order: Int

    private static let count = Mutex(0)

    private init(_ kind: Kind, _ text: String) {
        self.kind = kind
        self.text = text
        order = Self.count.withLock { count in
            count += 1
            return count
        }
    }

    @Sendable static func plain(_ text: String) -> DataPiece { DataPiece(.plain, text) }
    @Sendable static func binary(_ text: String) -> DataPiece { DataPiece(.binary, text) }
    @Sendable static func raw(_ text: String) -> DataPiece { DataPiece(.raw, text) }
    @Sendable static func encoded(_ text: String) -> DataPiece { DataPiece(.encoded, text) }

    func content() throws(ToolFailure) -> Data {
        switch kind {
        // As in curl, line breaks and NULs of files are removed.
        case .plain:
            text.hasPrefix("@")
                ? Data(try InputFile.read(argument: text).filter { ![0, 0x0A, 0x0D].contains($0) })
                : try InputFile.read(argument: text)
        case .binary: try InputFile.read(argument: text)
        case .raw: Data(text.utf8)
        case .encoded: try encodedContent()
        }
    }

    /// Percent-encodes the content in curl's forms: `content`, `=content`, `name=content`, `@file` and `name@file`.
    private func encodedContent() throws(ToolFailure) -> Data {
        guard let sign = text.firstIndex(of: "=") ?? text.firstIndex(of: "@") else { return Self.escaped(Data(text.utf8)) }
        let rest = String(text[text.index(after: sign)...])
        let content = text[sign] == "@" ? try InputFile.read(rest) : Data(rest.utf8)
        let name = text[..<sign]
        return Data((name.isEmpty ? "" : name + "=").utf8) + Self.escaped(content)
    }

    /// Percent-encodes all bytes except the unreserved characters of RFC 3986, section 2.3.
    static func escaped(_ data: Data) -> Data {
        let unreserved = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8)
        let escapes = (0...UInt8.max).map { unreserved.contains($0) ? [$0] : Array(String(format: "%%%02X", $0).utf8) }
        return Data(data.flatMap { escapes[Int($0)] })
    }
}
