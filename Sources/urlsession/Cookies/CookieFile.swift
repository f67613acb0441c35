// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoadingArchive

/// Reads and writes `cookies.txt` files; also reads them from standard input.
enum CookieFile {
    static func read(_ file: String) throws(ToolFailure) -> String {
        let data = try ToolFailure.describing(26, "cannot read \(name(file))") {
            file == "-"
                ? try FileHandle.standardInput.readToEnd() ?? Data() : try Data(contentsOf: URL(fileURLWithPath: file))
        }
        return String(decoding: data, as: UTF8.self)
    }

    /// Writes text to a file; a regular file is replaced by a rename, so that it is never incomplete or readable by others.
    static func write(_ text: String, to file: String) throws(ToolFailure) {
        try ToolFailure.describing(23, "cannot write \(file)") { try PrivateFile.write(Data(text.utf8), to: file) }
    }

    /// Returns the lines that are neither comments nor blank.
    static func cookieLines(of text: String) -> [Substring] {
        text.split { $0 == "\n" || $0 == "\r" || $0 == "\r\n" }.filter { line in
            !(line.hasPrefix("#") && !line.hasPrefix("#HttpOnly_")) && !line.allSatisfy(\.isWhitespace)
        }
    }

    /// Whether a line has enough tab-separated fields for a cookie, even an invalid one.
    static func isLikely(_ line: Substring) -> Bool { line.utf8.count { $0 == 0x09 } >= 5 }

    static func name(_ file: String) -> String { file == "-" ? "standard input" : file }
}
