// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit

/// A pseudo-terminal for one run of the tool, in which the test reads the output and types.
final class Terminal: Sendable {
    struct Failure: Error {
        let reason: String
    }

    private struct Progress: Sendable {
        var shown = ""
        var isOver = false
    }

    private let path: String
    /// Where the shell writes the terminal's settings after the tool has ended.
    private let folder: TemporaryDirectory
    private let master: FileHandle
    private let progress = Watched(Progress())

    init() throws {
        // Does what posix_openpt(3) and unlockpt(3) do, with constants that Swift does not import: TIOCSPTLCK, TIOCGPTN.
        let descriptor = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var (lock, number): (CInt, CInt) = (0, 0)
        guard descriptor >= 0, ioctl(descriptor, 0x4004_5431, &lock) == 0, ioctl(descriptor, 0x8004_5430, &number) == 0 else {
            throw Failure(reason: "there are no pseudo-terminals")
        }
        path = "/dev/pts/\(number)"
        folder = try TemporaryDirectory()
        master = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        let (master, progress) = (master, progress)
        Thread.detachNewThread {
            var bytes = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = read(master.fileDescriptor, &bytes, bytes.count)
                guard count > 0 else { return progress.change { $0.isOver = true } }
                let text = String(decoding: bytes[0..<count], as: UTF8.self)
                progress.change { $0.shown += text }
            }
        }
    }

    /// Resizes the terminal; its processes are notified (SIGWINCH).
    func resize(columns: Int, rows: Int = 24) throws {
        var size = winsize()
        size.ws_row = UInt16(rows)
        size.ws_col = UInt16(columns)
        guard ioctl(master.fileDescriptor, UInt(TIOCSWINSZ), &size) == 0 else {
            throw Failure(reason: "the pseudo-terminal cannot be resized")
        }
    }

    /// Shell commands that make this terminal the controlling terminal of a new session for the tool.
    var preparation: String { preparation() }

    /// Returns the same commands with redirections of the tool's output, in which `&3` is the terminal.
    func preparation(_ redirections: String = "") -> String {
        #"""
        exec setsid --wait sh -c \
        'exec 3<>"$TERMINAL"; trap : INT; "$0" "$@" REDIRECTIONS; code=$?; stty -a <&3 >"$SETTINGS"; exit $code' "$0" "$@"
        """#.replacingOccurrences(of: "REDIRECTIONS", with: redirections)
    }

    func environment(_ others: [String: String]) -> [String: String] {
        others.merging(["TERMINAL": path, "SETTINGS": folder.file("settings").path]) { $1 }
    }

    func type(_ text: String) throws { try master.write(contentsOf: Data(text.utf8)) }

    /// Everything shown so far, including echoed input.
    var shown: String { progress.read(\.shown) }

    /// Waits until `text` was shown after the first `count` characters, or the output has ended.
    func shown(_ text: String, after count: Int = 0) async throws {
        try await progress.value { $0.shown.dropFirst(count).contains(text) || $0.isOver ? () : nil }
    }

    /// Whether the terminal echoes input now.
    var echoes: Bool {
        var settings = termios()
        return tcgetattr(master.fileDescriptor, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
    }

    /// Whether the terminal echoed input when the tool had ended.
    var echoedAtTheEnd: Bool {
        get throws {
            let settings = try String(contentsOf: folder.file("settings"), encoding: .utf8)
            return settings.split(whereSeparator: \.isWhitespace).contains("echo")
        }
    }
}
