//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import Synchronization

/// Writes a response where the user wants it, as it comes.
///
/// A file is created with the first byte, or at the end of an empty body.
final class BodySink: Sendable {
    struct Failure: Error {
        let message: String
        /// Whoever read it is gone.
        var isClosedPipe = false
    }

    private struct Target {
        var path: String?
        /// The file must not be there.
        var isNew = false
        /// How often a number was put behind the file's name, where such a file must not be there.
        var tries: Int?
        var handle: FileHandle?
    }

    private let target: Mutex<Target>
    private let appends: Bool
    /// Where in a file that is there is written.
    private let offset: Int64?
    private let advice: String
    /// How many bytes of the body are still to be looked at.
    private let unseen: Mutex<Int>

    /// Standard output where `path` is nil or "-".
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - appends: Writes behind what the file has.
    ///   - offset: Writes at this place of a file that is there.
    ///   - sparesTerminal: Refuses a binary body where standard output is a terminal, unless "-" asks for it.
    ///   - numbersNames: Replaces no file, but takes another name.
    ///   - advice: What the user is told to do then.
    init(
        path: String?, appends: Bool = false, offset: Int64? = nil, sparesTerminal: Bool = false, numbersNames: Bool = false,
        advice: String = "write it to a file with '--output FILE', or '--output -' to see it all the same"
    ) {
        self.advice = advice
        self.appends = appends
        self.offset = offset
        let isFile = path != nil && path != "-"
        target = Mutex(
            Target(
                path: isFile ? path : nil, isNew: isFile && numbersNames, tries: numbersNames ? 0 : nil,
                handle: isFile ? nil : FileHandle.standardOutput))
        unseen = Mutex(sparesTerminal && path == nil && StandardOutput.isTerminal ? 2000 : 0)
    }

    /// The file; nil for standard output.
    var path: String? { target.withLock { $0.path } }

    /// The file, where something was written to it.
    var openedPath: String? { target.withLock { $0.handle == nil ? nil : $0.path } }

    /// Takes another file before anything is written, which is created now.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - replaces: Whether it may be there.
    /// - Throws: Where it cannot be created.
    func take(_ path: String, replaces: Bool) throws(Failure) {
        target.withLock { $0 = Target(path: path, isNew: !replaces) }
        try begin()
    }

    /// Whether what is written is seen by people alone.
    var isTerminal: Bool { path == nil && StandardOutput.isTerminal }

    /// Blocks until everything is written: that is what holds a fast server back.
    ///
    /// - Parameters:
    ///   - data: A piece of the body, or a head.
    ///   - isHead: Whether it is a head, which is text in any case.
    /// - Throws: Where it cannot be written, or a terminal is spared.
    func write(_ data: Data, isHead: Bool = false) throws(Failure) {
        let isBinary = unseen.withLock { unseen in
            guard !isHead, unseen > 0 else { return false }
            defer { unseen = max(0, unseen - data.count) }
            return data.prefix(unseen).contains(0)
        }
        if isBinary {
            throw Failure(
                message: "the body is binary, and would garble the terminal: \(advice)")
        }
        let file = try open()
        do {
            try file.write(contentsOf: data)
        } catch {
            throw Failure(
                message: "cannot write to \(path ?? "standard output"): \(ToolFailure.reason(error))",
                isClosedPipe: ToolFailure.systemError(error) == EPIPE)
        }
    }

    /// Creates the file, or empties it, before anything comes.
    func begin() throws(Failure) { _ = try open() }

    func close() throws(Failure) {
        let file = try open()
        guard path != nil else { return }
        do {
            try file.close()
        } catch {
            throw Failure(message: "cannot write to \(path ?? "standard output"): \(ToolFailure.reason(error))")
        }
    }

    private func open() throws(Failure) -> FileHandle {
        try target.withLock { (target: inout Target) throws(Failure) -> FileHandle in
            if let file = target.handle { return file }
            while true {
                let path = target.path ?? "/dev/stdout"
                var descriptor: Int32
                let flags =
                    offset != nil
                    ? O_WRONLY | O_NOFOLLOW
                    : appends ? O_WRONLY | O_APPEND : O_WRONLY | O_CREAT | (target.isNew ? O_EXCL | O_NOFOLLOW : O_TRUNC)
                repeat { descriptor = openFile(path, flags) } while descriptor < 0 && errno == EINTR
                guard descriptor >= 0 else {
                    // As many as curl tries.
                    if let tries = target.tries, errno == EEXIST, tries < 100 {
                        let name = tries == 0 ? path : String(path.dropLast(".\(tries)".count))
                        target.path = "\(name).\(tries + 1)"
                        target.tries = tries + 1
                        continue
                    }
                    if target.isNew, errno == EEXIST {
                        throw Failure(message: "the server calls it \(path), which is there already: choose with --output")
                    }
                    throw Failure(message: "cannot create \(path): \(String(cString: strerror(errno)))")
                }
                if let offset { lseek(descriptor, off_t(offset), SEEK_SET) }
                let opened = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
                target.handle = opened
                return opened
            }
        }
    }
}

/// Not called `open`, as the sink has a method of that name.
private func openFile(_ path: String, _ flags: Int32) -> Int32 { open(path, flags, 0o666) }
