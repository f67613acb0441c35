// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// Writes the data of a response to its destination as the data arrives.
///
/// A file is created when the first byte arrives, or at the end of an empty body.
final class BodySink: Sendable {
    private struct Target {
        var path: String?
        /// Whether the file must not exist yet.
        var isNew = false
        /// The number of alternative names tried, if existing files are not replaced.
        var tries: Int?
        var handle: FileHandle?
    }

    private let target: Mutex<Target>
    private let appends: Bool
    /// The position in an existing file at which to write.
    private let offset: Int64?
    private let advice: String
    /// The number of bytes of the body that are still to be checked for binary data.
    private let uncheckedCount: Mutex<Int>

    /// Creates a sink for a file, or for standard output if `path` is nil or "-".
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - appends: Whether to append to the file.
    ///   - offset: The position in an existing file at which to write.
    ///   - refusesBinaryOnTerminal: Whether to refuse a binary body if standard output is a terminal, unless `path` is "-".
    ///   - keepsExistingFiles: Whether to choose another name instead of replacing a file.
    ///   - advice: The advice to the user when a binary body is refused.
    init(
        path: String?, appends: Bool = false, offset: Int64? = nil, refusesBinaryOnTerminal: Bool = false,
        keepsExistingFiles: Bool = false,
        advice: String = "write it to a file with '--output FILE', or use '--output -' to see it anyway"
    ) {
        self.advice = advice
        self.appends = appends
        self.offset = offset
        let isFile = path != nil && path != "-"
        target = Mutex(
            Target(
                path: isFile ? path : nil, isNew: isFile && keepsExistingFiles, tries: keepsExistingFiles ? 0 : nil,
                handle: isFile ? nil : FileHandle.standardOutput))
        uncheckedCount = Mutex(refusesBinaryOnTerminal && path == nil && StandardOutput.isTerminal ? 2000 : 0)
    }

    /// The file; nil for standard output.
    var path: String? { target.withLock { $0.path } }

    /// The file, if it was opened.
    var openedPath: String? { target.withLock { $0.handle == nil ? nil : $0.path } }

    /// Sets another file as the destination before anything is written, and creates that file.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - replaces: Whether to replace an existing file, instead of throwing an error.
    /// - Throws: If the file cannot be created.
    func take(_ path: String, replaces: Bool) throws(ToolFailure) {
        target.withLock { $0 = Target(path: path, isNew: !replaces) }
        try begin()
    }

    /// Whether the output goes to a terminal.
    var isTerminal: Bool { path == nil && StandardOutput.isTerminal }

    /// Writes data, and blocks until the data is written, which slows down a fast server.
    ///
    /// - Parameters:
    ///   - data: A piece of the body, or a head.
    ///   - isHead: Whether the data is a head, which is always text.
    /// - Throws: If the data cannot be written, or is refused for a terminal.
    func write(_ data: Data, isHead: Bool = false) throws(ToolFailure) {
        let isBinary = uncheckedCount.withLock { uncheckedCount in
            guard !isHead, uncheckedCount > 0 else { return false }
            defer { uncheckedCount = max(0, uncheckedCount - data.count) }
            return data.prefix(uncheckedCount).contains(0)
        }
        if isBinary {
            throw ToolFailure(23, "the body is binary, and would garble the terminal: \(advice)")
        }
        let file = try opened()
        do {
            try file.write(contentsOf: data)
        } catch {
            throw failure(error)
        }
    }

    /// Creates or truncates the file before data arrives.
    func begin() throws(ToolFailure) { _ = try opened() }

    func close() throws(ToolFailure) {
        let file = try opened()
        guard path != nil else { return }
        do {
            try file.close()
        } catch {
            throw failure(error)
        }
    }

    private func failure(_ error: any Error) -> ToolFailure {
        var failure = ToolFailure(23, "cannot write to \(path ?? "standard output"): \(ToolFailure.reason(error))")
        failure.isClosedPipe = ToolFailure.systemError(error) == EPIPE
        return failure
    }

    private func opened() throws(ToolFailure) -> FileHandle {
        try target.withLock { (target: inout Target) throws(ToolFailure) -> FileHandle in
            if let file = target.handle { return file }
            while true {
                let path = target.path ?? "/dev/stdout"
                var descriptor: Int32
                let flags =
                    offset != nil
                    ? O_WRONLY | O_NOFOLLOW
                    : appends ? O_WRONLY | O_APPEND : O_WRONLY | O_CREAT | (target.isNew ? O_EXCL | O_NOFOLLOW : O_TRUNC)
                repeat { descriptor = open(path, flags, 0o666) } while descriptor < 0 && errno == EINTR
                guard descriptor >= 0 else {
                    // As in curl, at most 100 other names are tried.
                    if let tries = target.tries, errno == EEXIST, tries < 100 {
                        let name = tries == 0 ? path : String(path.dropLast(".\(tries)".count))
                        target.path = "\(name).\(tries + 1)"
                        target.tries = tries + 1
                        continue
                    }
                    if target.isNew, errno == EEXIST {
                        throw ToolFailure(
                            23, "the server suggests the name \(path), which already exists: choose one with --output")
                    }
                    throw ToolFailure.system(23, "cannot create \(path)")
                }
                if let offset { lseek(descriptor, off_t(offset), SEEK_SET) }
                let opened = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
                target.handle = opened
                return opened
            }
        }
    }
}
