// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A library that is compiled from C on demand, with a compiler in PATH (clang, cc or gcc), to preload into a process.
package struct PreloadedLibrary: Sendable {
    /// The folder of the library, in which the test may create files of its own.
    package let folder: TemporaryDirectory
    private var path: String { folder.file("preloaded.so").path }

    package init(source: String) throws {
        folder = try TemporaryDirectory()
        let file = try folder.write(source.utf8, to: "preloaded.c")
        try ServerProcess.run(
            ServerProcess.Command(
                [try Self.compiler(), "-shared", "-fPIC", "-O1", "-o", path, file.path, "-ldl"],
                environment: ProcessInfo.processInfo.environment, output: folder.file("output")))
    }

    /// A C function of a library that was preloaded into this process; nil if there is no function with this name.
    package static func function<Function>(_ name: String, as _: Function.Type) -> Function? {
        dlsym(nil, name).map { unsafeBitCast($0, to: Function.self) }
    }

    private static func compiler() throws -> String {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        for name in ["clang", "cc", "gcc"] {
            for folder in folders where FileManager.default.isExecutableFile(atPath: "\(folder)/\(name)") {
                return "\(folder)/\(name)"
            }
        }
        throw ServerProcess.Failure(description: "clang, cc and gcc were not found in PATH")
    }

    /// The environment that preloads the library into a process, in addition to the libraries that are already preloaded, for
    /// example by `Scripts/sanitize thread`.
    package var environment: [String: String] {
        let others = ProcessInfo.processInfo.environment["LD_PRELOAD"].map { [$0] } ?? []
        return ["LD_PRELOAD": ([path] + others.filter { !$0.isEmpty }).joined(separator: ":")]
    }
}
