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

    private let path: String?
    private let appends: Bool
    private let advice: String
    private let handle: Mutex<FileHandle?>
    /// How many bytes of the body are still to be looked at.
    private let unseen: Mutex<Int>

    /// Standard output where `path` is nil or "-".
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - appends: Writes behind what the file has.
    ///   - sparesTerminal: Refuses a binary body where standard output is a terminal, unless "-" asks for it.
    ///   - advice: What the user is told to do then.
    init(
        path: String?, appends: Bool = false, sparesTerminal: Bool = false,
        advice: String = "write it to a file with '--output FILE', or '--output -' to see it all the same"
    ) {
        self.advice = advice
        self.appends = appends
        self.path = path == "-" ? nil : path
        handle = Mutex(self.path == nil ? FileHandle.standardOutput : nil)
        unseen = Mutex(sparesTerminal && path == nil && StandardOutput.isTerminal ? 2000 : 0)
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
        try handle.withLock { (file: inout FileHandle?) throws(Failure) -> FileHandle in
            if let file { return file }
            let path = path ?? "/dev/stdout"
            var descriptor: Int32
            let flags = appends ? O_WRONLY | O_APPEND : O_WRONLY | O_CREAT | O_TRUNC
            repeat { descriptor = openFile(path, flags) } while descriptor < 0 && errno == EINTR
            guard descriptor >= 0 else {
                throw Failure(message: "cannot create \(path): \(String(cString: strerror(errno)))")
            }
            let opened = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            file = opened
            return opened
        }
    }
}

/// Not called `open`, as the sink has a method of that name.
private func openFile(_ path: String, _ flags: Int32) -> Int32 { open(path, flags, 0o666) }
