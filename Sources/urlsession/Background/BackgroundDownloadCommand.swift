//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession background download`: downloads that continue after the tool has exited.
struct BackgroundDownloadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "download",
        abstract: "Orders downloads, which go on when the command has ended.",
        discussion: """
            They are ordered for good when the command returns, which prints a number for each. Each file appears in its place when it \
            is complete; a name that is taken gets a number, as in big.iso.1. Why one failed is written to NAME.error. What the \
            network or a busy server keeps from coming is asked for again, for a week at most.
            """
    )

    @Argument(help: "The URLs; http:// where there is no scheme.")
    var urls: [String]

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The file to write; otherwise the server's or the URL's name.", valueName: "file"),
        completion: .file())
    var output: String?

    @Option(
        name: .customLong("output-dir"), help: ArgumentHelp("The folder to write to; otherwise this one.", valueName: "folder"))
    var folder: String?

    @Flag(help: "Replace a file that is there.")
    var force = false

    @OptionGroup var options: BackgroundOrderOptions

    func validate() throws {
        if output != nil, urls.count > 1 { throw ValidationError("--output is for one URL; use --output-dir.") }
    }

    func run() async throws {
        let current = URL(fileURLWithPath: FileManager.default.currentDirectoryPath, isDirectory: true)
        let folder = folder.map { URL(fileURLWithPath: $0, isDirectory: true, relativeTo: current) } ?? current
        // Check all URLs before the first transfer is created.
        let wanted = try urls.map { text in
            let url = try BackgroundOrderOptions.url(text)
            let name = try output ?? DownloadPlace(output: nil, url: url).path
            let target = URL(fileURLWithPath: name, relativeTo: folder).standardizedFileURL
            try Self.check(target)
            return (url, target.path)
        }
        let orders = BackgroundOrders(options)
        for (url, target) in wanted {
            let note = TransferNote(target: target, place: target, takesSuggestion: output == nil, force: force)
            try orders.add(url, note) { $0.downloadTask(with: options.request(for: url)) }
        }
        try await orders.conclude()
    }

    private static func check(_ target: URL) throws(ToolFailure) {
        let parent = target.deletingLastPathComponent().path
        guard access(parent, W_OK | X_OK) == 0 else {
            throw ToolFailure(23, "cannot write to \(parent): \(String(cString: strerror(errno)))")
        }
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: target.path, isDirectory: &isFolder), isFolder.boolValue {
            throw ToolFailure(23, "\(target.path) is a folder: use --output-dir")
        }
    }
}
