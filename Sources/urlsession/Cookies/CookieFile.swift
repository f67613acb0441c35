//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// Reads and writes `cookies.txt` files; also reads them from standard input.
enum CookieFile {
    static func read(_ file: String) throws(ToolFailure) -> String {
        do {
            let data =
                file == "-"
                ? try FileHandle.standardInput.readToEnd() ?? Data() : try Data(contentsOf: URL(fileURLWithPath: file))
            return String(decoding: data, as: UTF8.self)
        } catch {
            throw ToolFailure(26, "cannot read \(name(file)): \(ToolFailure.reason(error))")
        }
    }

    /// Writes text to a file; a regular file is replaced by a rename, so that it is never incomplete or readable by others.
    static func write(_ text: String, to file: String) throws(ToolFailure) {
        let isThere = FileManager.default.fileExists(atPath: file)
        // If the file is a symbolic link, the link is kept, and the file to which it points is replaced.
        let target = isThere ? URL(fileURLWithPath: file).resolvingSymlinksInPath().path : file
        let kind = try? FileManager.default.attributesOfItem(atPath: target)[.type] as? FileAttributeType
        if isThere, kind != .typeRegular { return try fill(open(file, O_WRONLY | O_CLOEXEC), with: text, file) }
        let aside = "\(target).\(UUID().uuidString)"
        do throws(ToolFailure) {
            try fill(open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600), with: text, file)
            guard rename(aside, target) == 0 else { throw cannotWrite(file) }
        } catch {
            unlink(aside)
            throw error
        }
    }

    private static func fill(_ descriptor: Int32, with text: String, _ file: String) throws(ToolFailure) {
        guard descriptor >= 0 else { throw cannotWrite(file) }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try handle.write(contentsOf: Data(text.utf8))
            try handle.close()
        } catch {
            throw ToolFailure(23, "cannot write \(file): \(ToolFailure.reason(error))")
        }
    }

    private static func cannotWrite(_ file: String) -> ToolFailure {
        ToolFailure(23, "cannot write \(file): \(String(cString: strerror(errno)))")
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
