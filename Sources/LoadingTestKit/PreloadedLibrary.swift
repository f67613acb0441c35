//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// A library made from C when it is wanted, with the compiler that comes with Swift, to preload into a process.
package struct PreloadedLibrary: Sendable {
    package struct NoCompiler: Error {
        package let output: String
    }

    /// The library's, and its user's.
    package let folder: TemporaryDirectory
    private var path: String { folder.file("preloaded.so").path }

    package init(source: String) throws {
        folder = try TemporaryDirectory()
        let file = try folder.write(source.utf8, to: "preloaded.c")
        let output = Pipe()
        let process = Process()
        process.executableURL = try Self.compiler()
        process.arguments = ["-shared", "-fPIC", "-O1", "-o", path, file.path, "-ldl"]
        process.standardError = output
        try process.run()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw NoCompiler(output: String(decoding: text, as: UTF8.self)) }
    }

    private static func compiler() throws -> URL {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        for name in ["clang", "cc", "gcc"] {
            for folder in folders where FileManager.default.isExecutableFile(atPath: "\(folder)/\(name)") {
                return URL(fileURLWithPath: "\(folder)/\(name)")
            }
        }
        throw NoCompiler(output: "none of clang, cc, gcc in PATH")
    }

    /// What a process's environment needs; what is preloaded already, as by `Scripts/sanitize thread`, stays.
    package var environment: [String: String] {
        let others = ProcessInfo.processInfo.environment["LD_PRELOAD"].map { [$0] } ?? []
        return ["LD_PRELOAD": ([path] + others.filter { !$0.isEmpty }).joined(separator: ":")]
    }
}
