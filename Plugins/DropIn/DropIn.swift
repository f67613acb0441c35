//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import PackagePlugin

/// Runs `swift build`, `swift test` or `swift run` with every `import FoundationNetworking` of the package and its dependencies meaning
/// URLLoading.
///
/// The compiler's option for that, `-module-alias`, is not enough where a dependency does not depend on URLLoading: it may be compiled
/// first, when there is no URLLoading to import, and it does not find the C modules that URLLoading's modules import. So URLLoading is
/// built first, and the C modules are listed in a module map that every compilation is given.
@main
struct DropIn: CommandPlugin {
    private static let usage = """
        usage: swift package urlloading build|test|run [options of that command]
               swift package urlloading flags

        Builds the package with every `import FoundationNetworking`, in it and in its dependencies, meaning URLLoading.
        `flags` prints the compiler's options for other tools, such as an editor, a line for each.
        """
    /// Options with a value that a build shares with tests and runs, as far as they say what is built and how.
    private static let optionsWithValue: Set<String> = [
        "-c", "--configuration", "-Xcc", "-Xcxx", "-Xswiftc", "-Xlinker", "--sanitize", "--triple", "--swift-sdk", "--sdk",
        "--toolchain",
        "--toolset", "--traits", "-j", "--jobs", "--cache-path", "--config-path", "--security-path", "--pkg-config-path",
    ]
    private static let options: Set<String> = [
        "--enable-all-traits", "--disable-default-traits", "--static-swift-stdlib", "--enable-code-coverage", "-v", "--verbose",
        "-q",
        "--quiet", "--disable-automatic-resolution", "--force-resolved-versions", "--skip-update",
    ]

    func performCommand(context: PluginContext, arguments: [String]) async throws {
        var arguments = arguments
        guard let command = arguments.first, ["build", "test", "run", "flags"].contains(command) else {
            print(Self.usage)
            if let first = arguments.first, !["help", "-h", "--help"].contains(first) {
                throw Failure("unknown command: \(first)")
            }
            return
        }
        arguments.removeFirst()
        let shared = Self.sharedOptions(of: arguments, command)
        let place = Place(context)
        let flags = try place.flags(moduleMap: writeModuleMap(context, place, shared))
        if command == "flags" {
            print(flags.joined(separator: "\n"))
            return
        }
        let common = place.options + flags.flatMap { ["-Xswiftc", $0] }
        try place.swift(["build", "--target", "URLLoading"] + common + shared)
        try place.swift([command] + common + arguments)
    }

    private static func sharedOptions(of arguments: [String], _ command: String) -> [String] {
        var shared: [String] = []
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            if options.contains(argument)
                || optionsWithValue.contains(where: { $0.hasPrefix("--") && argument.hasPrefix($0 + "=") })
            {
                shared.append(argument)
            } else if optionsWithValue.contains(argument) {
                shared.append(argument)
                if let value = rest.popFirst() { shared.append(value) }
            } else if argument == "--" || (command == "run" && !argument.hasPrefix("-")) {
                // What follows is the program's.
                break
            }
        }
        return shared
    }

    /// Names the C modules that URLLoading's modules import, where the package has them or the build writes them.
    private func writeModuleMap(_ context: PluginContext, _ place: Place, _ shared: [String]) throws -> URL {
        let products = try place.output(["build", "--show-bin-path"] + place.options + shared)
        let targets = Self.targets(of: context.package)
        guard let library = targets["URLLoading"] else {
            throw Failure("the package does not depend on URLLoading: add it to the dependencies of a target")
        }
        var lines: [String] = []
        for target in [library] + library.recursiveTargetDependencies {
            let own: URL
            switch target {
            case let target as ClangSourceModuleTarget:
                own = (target.publicHeadersDirectoryURL ?? target.directoryURL.appending(path: "include"))
                    .appending(path: "module.modulemap")
            case let target as SystemLibraryTarget: own = target.directoryURL.appending(path: "module.modulemap")
            default: continue
            }
            let generated = "\(products)/\(target.name).build/module.modulemap"
            let path = FileManager.default.fileExists(atPath: own.path) ? own.path : generated
            lines.append("extern module \(target.name) \"\(path)\"")
        }
        let file = context.pluginWorkDirectoryURL.appending(path: "URLLoading.modulemap")
        let text = Data((lines.sorted().joined(separator: "\n") + "\n").utf8)
        // Compilations depend on the file: it stays as it is where nothing changed.
        if (try? Data(contentsOf: file)) != text { try text.write(to: file, options: .atomic) }
        return file
    }

    private static func targets(of package: Package) -> [String: any Target] {
        var targets: [String: any Target] = [:]
        var seen: Set<Package.ID> = []
        var packages = [package]
        while let next = packages.popLast() {
            guard seen.insert(next.id).inserted else { continue }
            for target in next.targets { targets[target.name] = target }
            packages += next.dependencies.map(\.package)
        }
        return targets
    }
}

/// The package that is built, and its build folder.
private struct Place {
    let package: URL
    let scratch: URL

    init(_ context: PluginContext) {
        package = context.package.directoryURL
        // <build folder>/plugins/<plugin>/outputs
        scratch = context.pluginWorkDirectoryURL.deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
    }

    /// The process that runs the plugin has the build folder's lock until the plugin ends, and leaves the folder alone meanwhile.
    var options: [String] { ["--package-path", package.path, "--scratch-path", scratch.path, "--ignore-lock"] }

    func flags(moduleMap: URL) -> [String] {
        ["-module-alias", "FoundationNetworking=URLLoading", "-Xcc", "-fmodule-map-file=\(moduleMap.path)"]
    }

    func swift(_ arguments: [String]) throws {
        let process = command(arguments)
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure("swift \(arguments.first ?? "") failed") }
    }

    func output(_ arguments: [String]) throws -> String {
        let process = command(arguments)
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure("swift \(arguments.first ?? "") failed") }
        return text.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private func command(_ arguments: [String]) -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["swift"] + arguments
        return process
    }
}

private struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
