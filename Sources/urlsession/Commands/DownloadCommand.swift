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

/// `urlsession download`: downloads a file completely or not at all, and can resume an interrupted download.
struct DownloadCommand: AsyncParsableCommand {
    /// The options for the downloaded file.
    struct Result: ParsableArguments {
        @Option(
            name: .shortAndLong,
            help: ArgumentHelp("The file to write; otherwise the server's or the URL's name.", valueName: "file"),
            completion: .file()
        )
        var output: String?

        @Flag(help: "Go on with an interrupted download: give the same options again, since their secrets are not kept.")
        var resume = false

        @Option(
            help: ArgumentHelp(
                "Load so many parts at once, each over a connection of its own, where the server has a strong ETag; no more than 6.",
                valueName: "count"))
        var segments = 1

        @Option(help: ArgumentHelp("Keep the file only if it is this one, or exit with 32.", valueName: "sha-256=hex"))
        var checksum: Checksum?

        @Flag(help: "Load only what was changed after the file here was, and give it the time of the server's.")
        var timestamping = false

        @Option(
            name: .customLong("input-file"),
            help: ArgumentHelp(
                "Download the URLs of this file, too, one a line; - for standard input; also -i.", valueName: "file"),
            completion: .file())
        var lists: [String] = []

        @Flag(
            name: .shortAndLong,
            help: ArgumentHelp("Exit with 22 when the server answers 400 or more: the default.", visibility: .hidden))
        var fail = false
    }

    static let configuration = CommandConfiguration(
        commandName: "download",
        abstract: "Downloads a file.",
        discussion: """
            The file appears when it is complete. Ctrl-C, or a lost connection, leaves NAME.resume and NAME.part beside it; \
            --resume goes on from them, also where this command was killed, or from a NAME that curl or wget left, and begins afresh where \
            that cannot be done. HTTP errors are failures (22).
            """
    )

    @Argument(help: ArgumentHelp("The URLs; http:// where there is no scheme.", valueName: "url"))
    var urls: [String] = []

    @OptionGroup(title: "Common options") var result: Result

    @OptionGroup(title: "File options") var file: PlaceOptions

    @OptionGroup var options: RequestOptions

    func validate() throws {
        if urls.isEmpty, result.lists.isEmpty { throw ValidationError("There is no URL.") }
        if !(1...6 ~= result.segments) { throw ValidationError("--segments is from 1 to 6.") }
        let isSeveral = urls.count > 1 || !result.lists.isEmpty
        if isSeveral, result.output != nil || result.checksum != nil {
            throw ValidationError("--output and --checksum are for one URL.")
        }
        if result.timestamping, result.resume { throw ValidationError("--timestamping and --resume exclude each other.") }
    }

    func run() async throws { try await options.carryOut(downloadAll) }

    /// Downloads the files one after the other; if some fail, the last failure is the command's result.
    private func downloadAll() async throws {
        var listed: [String] = []
        for list in result.lists { listed += try AddressOptions.addresses(in: list) }
        var last: ToolFailure?
        for url in urls + listed {
            if let last { options.heard(last).show() }
            do {
                try await FileDownload(url: url, result: result, file: file, options: options).run()
            } catch let failure as ToolFailure {
                if failure.code == 130 { throw failure }
                last = failure
            }
        }
        if let last { throw last }
    }
}
