// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession background download`: starts downloads that continue after the tool has exited.
struct BackgroundDownloadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "download",
        abstract: "Starts downloads that continue after the command has exited.",
        discussion: """
            When the command returns, the downloads are stored durably; it prints a number for each. Each file appears when it is \
            complete; if its name is taken, a number is appended, as in big.iso.1. If a download fails, the reason is written to \
            NAME.error. Downloads that fail because of the network or a busy server are retried for up to a week.
            """
    )

    @Argument(help: "The URLs; without a scheme, http:// is assumed.")
    var urls: [String]

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The file to write; by default, the name comes from the server or the URL.", valueName: "file"),
        completion: .file())
    var output: String?

    @Option(
        name: .customLong("output-dir"),
        help: ArgumentHelp("The folder to write to; the current one by default.", valueName: "folder"))
    var folder: String?

    @Flag(help: "Replace an existing file.")
    var force = false

    @OptionGroup var options: BackgroundTransferOptions

    func validate() throws {
        if output != nil, urls.count > 1 { throw ValidationError("--output accepts only one URL; use --output-dir.") }
    }

    func run() async throws {
        let current = URL(fileURLWithPath: FileManager.default.currentDirectoryPath, isDirectory: true)
        let folder = folder.map { URL(fileURLWithPath: $0, isDirectory: true, relativeTo: current) } ?? current
        // Check all URLs before the first transfer is created.
        let wanted = try urls.map { text in
            let url = try BackgroundTransferOptions.url(text)
            let name = try output ?? DownloadFiles(output: nil, url: url).path
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
