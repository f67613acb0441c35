//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// How a test and its programs speak: lines of words, each of which is percent-encoded.
///
///     session NAME [KEY=VALUE ...]    makes a background session
///     download NAME URL [TEXT] [KEY=VALUE ...]
///     upload NAME URL FILE [TEXT]
///     tasks NAME                      says what getAllTasks has
///     cancel, suspend, resume, produce TASK       a task is NAME.NUMBER
///     continue NAME                   downloads on with what `produce` had
///     continueUpload NAME             uploads on with it
///     take move|leave|die|...        what becomes of what was downloaded
///     await LINE                      waits until it has written such a line itself
///     sync                            waits until the daemon heard all that was said
///     leave                           that, and ends
enum ProgramScript {
    static let labelKey = "BACKGROUND_PROGRAM_LABEL"
    static let journalKey = "BACKGROUND_PROGRAM_JOURNAL"
    static let folderKey = "BACKGROUND_PROGRAM_FOLDER"
    static let scriptKey = "BACKGROUND_PROGRAM_SCRIPT"
    static let launchKey = "BACKGROUND_PROGRAM_LAUNCH"

    private static let plain = CharacterSet.alphanumerics.union(CharacterSet(charactersIn: "/:.-_?=&*"))

    static func line(_ words: [String]) -> String {
        words.map { $0.addingPercentEncoding(withAllowedCharacters: plain) ?? "" }.joined(separator: " ")
    }

    static func words(_ line: String) -> [String] {
        line.split(separator: " ").map { $0.removingPercentEncoding ?? "" }
    }

    /// For what is to be started by another means than the daemon's.
    static let scriptName = "activate"

    static let environment = ProcessInfo.processInfo.environment

    /// What this process is told, first by its environment and then by its input.
    static var lines: AsyncStream<String> {
        AsyncStream { continuation in
            for line in (environment[scriptKey] ?? "").split(separator: ";") { continuation.yield(String(line)) }
            Thread.detachNewThread {
                while let line = readLine() { continuation.yield(line) }
                continuation.finish()
            }
        }
    }
}
