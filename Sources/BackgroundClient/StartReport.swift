// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import CLoadingSystem
import LibC
import LoadingModel

/// How many starts in a row were in vain: a daemon ended without a message, or the service manager could not start one.
///
/// One daemon may have been killed, but after several, the next one is not expected to work either.
struct VainStarts {
    private static let limit = 3
    private var count = 0

    /// Counts a start in vain.
    ///
    /// - Returns: Whether no further start is worth trying.
    mutating func areTooMany() -> Bool {
        count += 1
        return count >= Self.limit
    }
}

/// Reads what a starting daemon reports, until the daemon listens or ends.
///
/// The report is used by one thread.
package final class StartReport {
    /// The maximum number of bytes read from the log.
    private static let textLimit = 1000
    private static let bytesLimit = 8 * StartupMessage.limit

    private let descriptor: CInt
    private let log: String
    /// The size of the log before the start.
    private let logged: Int64
    private var rest: [UInt8] = []
    private var count = 0
    /// The latest message.
    private(set) var word: StartupMessage?
    /// Whether no further messages can arrive.
    private(set) var isOver = false

    init(_ descriptor: CInt, log: String, logged: Int64) {
        self.descriptor = descriptor
        self.log = log
        self.logged = logged
    }

    deinit { _ = cls_close(descriptor) }

    /// Whether the daemon has ended without a message.
    var isSilent: Bool { isOver && word == nil }
    var silence: LoadError {
        LoadError(.backgroundSessionDisconnected, "urlsessiond ends without a message as soon as it is started; see \(log)")
    }

    static func size(of log: String) -> Int64 {
        var facts = cls_file_facts()
        return cls_path_facts(log, &facts) == 0 ? facts.size : 0
    }

    /// Reads the available messages, waiting for a number of milliseconds.
    ///
    /// - Returns: The reason if the daemon will never listen; nil if the daemon may still listen later.
    func look(_ milliseconds: CInt = 0) -> String? {
        if !isOver { read(milliseconds) }
        if case .failed(let reason) = word { return reason }
        // A daemon that was killed reports nothing, and the next daemon may succeed. If the program could not be executed, the log
        // contains the system's reason.
        if isOver, word == nil, let text = loggedText { return "urlsessiond cannot be run: \(text)" }
        return nil
    }

    private func read(_ milliseconds: CInt) {
        guard milliseconds == 0 || cls_wait_any([descriptor], 1, milliseconds) != 0 else { return }
        var piece = [UInt8](repeating: 0, count: StartupMessage.limit)
        while !isOver {
            let read = cls_read_some(descriptor, &piece, piece.count)
            if read == -Int64(EAGAIN) { return }
            count += Int(max(0, read))
            guard read > 0, count <= Self.bytesLimit else {
                isOver = true
                return
            }
            rest += piece.prefix(Int(read))
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                if let said = StartupMessage(line: String(decoding: rest[..<end], as: UTF8.self)) { word = said }
                rest.removeSubrange(...end)
            }
        }
    }

    /// The text added to the log since the start, without the lines that daemons wrote, which begin with a date.
    private var loggedText: String? {
        let file = cls_open_for_reading(log)
        guard file >= 0 else { return nil }
        defer { _ = cls_close(file) }
        var bytes = [UInt8](repeating: 0, count: Self.textLimit)
        let count = cls_read_at(file, &bytes, bytes.count, logged)
        guard count > 0 else { return nil }
        let lines = String(decoding: bytes.prefix(Int(count)), as: UTF8.self).split(whereSeparator: \.isNewline)
        let text = lines.filter { $0.utf8.first.map { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ?? false }
        return text.isEmpty ? nil : text.joined(separator: " ")
    }
}
