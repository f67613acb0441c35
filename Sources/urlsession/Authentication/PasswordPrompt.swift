// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import Synchronization

/// Asks for a password at the terminal without echoing it, or reads one from standard input.
enum PasswordPrompt {
    /// The maximum length of a password, in bytes.
    private static let limit = 4096

    /// Whether the process has a controlling terminal, even if the standard streams are redirected.
    static var isPossible: Bool {
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
        guard terminal >= 0 else { return false }
        close(terminal)
        return true
    }

    /// The answers that the user has given, so that each question is asked once per command; the mutex also serializes the
    /// questions of concurrent loads.
    private static let answers = Mutex<[String: String]>([:])

    static func askOnce(_ question: String) throws(ToolFailure) -> String {
        try answers.withLock { (answers) throws(ToolFailure) -> String in
            if let answer = answers[question] { return answer }
            let answer = try ask(question)
            answers[question] = answer
            return answer
        }
    }

    static func ask(_ question: String) throws(ToolFailure) -> String {
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
        guard terminal >= 0 else {
            throw ToolFailure(2, "a password is missing, and there is no terminal to ask for it")
        }
        defer { close(terminal) }
        var found = termios()
        guard tcgetattr(terminal, &found) == 0 else {
            throw ToolFailure(2, "cannot turn off the terminal's echo to read a password")
        }
        let original = found
        let restore: @Sendable () -> Void = {
            var original = original
            tcsetattr(terminal, TCSAFLUSH, &original)
        }
        // If the program were suspended while echo is off, the terminal would not echo in the shell either.
        signal(SIGTSTP, SIG_IGN)
        let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
        for number in signals {
            SignalActions.set(number) {
                restore()
                show("\n", at: terminal)
                exit(128 + number)
            }
        }
        defer {
            for number in signals { SignalActions.clear(number) }
            restore()
            signal(SIGTSTP, SIG_DFL)
        }
        var hidden = original
        hidden.c_lflag &= ~tcflag_t(ECHO | ECHOE | ECHOK | ECHONL)
        guard tcsetattr(terminal, TCSAFLUSH, &hidden) == 0 else {
            throw ToolFailure(2, "cannot turn off the terminal's echo to read a password")
        }
        show(question + ": ", at: terminal)
        let line = readLine(from: terminal)
        show("\n", at: terminal)
        return try text(of: line, from: "the terminal")
    }

    /// Returns the first line of standard input.
    static func readStandardInput() throws(ToolFailure) -> String {
        try text(of: readLine(from: STDIN_FILENO), from: "standard input")
    }

    private static func text(of line: [UInt8]?, from place: String) throws(ToolFailure) -> String {
        guard let line else { throw ToolFailure(26, "no password was read from \(place)") }
        guard line.count <= limit else { throw ToolFailure(26, "the password is too long") }
        guard let text = String(validating: line, as: UTF8.self) else {
            throw ToolFailure(26, "the password is not UTF-8")
        }
        return text
    }

    /// Returns the next line without its line ending; nil if the input contains no more bytes.
    ///
    /// Bytes after the line remain unread.
    private static func readLine(from file: Int32) -> [UInt8]? {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while line.count <= limit {
            let count = read(file, &byte, 1)
            if count < 0, errno == EINTR { continue }
            if count <= 0, line.isEmpty { return nil }
            if count <= 0 || byte == UInt8(ascii: "\n") { break }
            line.append(byte)
        }
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        return line
    }

    private static func show(_ text: String, at terminal: Int32) {
        let bytes = Array(text.utf8)
        // Ignore errors: if the prompt cannot be written, reading the password fails, too.
        _ = write(terminal, bytes, bytes.count)
    }
}
