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
    }

    private let path: String?
    private let handle: Mutex<FileHandle?>

    /// Standard output where `path` is nil or "-".
    init(path: String?) {
        self.path = path == "-" ? nil : path
        handle = Mutex(self.path == nil ? FileHandle.standardOutput : nil)
    }

    /// Blocks until everything is written: that is what holds a fast server back.
    func write(_ data: Data) throws(Failure) {
        let file = try open()
        do {
            try file.write(contentsOf: data)
        } catch {
            throw Failure(message: "cannot write to \(path ?? "standard output"): \(ToolFailure.reason(error))")
        }
    }

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
            repeat { descriptor = creat(path, 0o666) } while descriptor < 0 && errno == EINTR
            guard descriptor >= 0 else {
                throw Failure(message: "cannot create \(path): \(String(cString: strerror(errno)))")
            }
            let opened = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            file = opened
            return opened
        }
    }
}
