// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The orders that a test gives to its programs: lines of words, each of which is percent-encoded.
///
///     session NAME [KEY=VALUE ...]    creates a background session
///     download NAME URL [TEXT] [KEY=VALUE ...]
///     data NAME URL [TEXT]            becomes a download if the URL's query is `become`
///     upload NAME URL FILE [TEXT]
///     tasks NAME                      writes the result of getAllTasks
///     cancel, suspend, resume, produce TASK       a task is NAME.NUMBER
///     continue NAME                   downloads with the resume data of `produce`
///     continueUpload NAME             uploads with the resume data of `produce`
///     take move|leave|die|...        what the delegate does with a downloaded file
///     await LINE                      waits until the program has written such a line itself
///     sync                            waits until the daemon has processed all messages
///     leave                           sync, then exit
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

    /// The name of the script with which a message bus or a service manager starts a program.
    static let scriptName = "activate"

    static let environment = ProcessInfo.processInfo.environment

    /// The orders of this process, first from its environment and then from its input.
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
