// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession download`: downloads a file completely or not at all, and can resume an interrupted download.
struct DownloadCommand: AsyncParsableCommand {
    /// The options for the downloaded file.
    struct Result: ParsableArguments {
        @Option("--output -o <file>", "The file to write; by default, the name comes from the server or the URL.")
        var output: String?

        @Flag("--resume", "Resume an interrupted download; repeat its options, because their secrets are not stored.")
        var resume = false

        @Option(
            "--segments <count>",
            "Load this many parts concurrently, each over its own connection, if the server has a strong ETag; at most 6.")
        var segments = 1

        @Option("--checksum <sha-256=hex>", "Keep the file only if it has this digest; otherwise, exit with 32.")
        var checksum: Checksum?

        @Flag("--timestamping", "Load the file only if it is newer on the server, and set the local file's time to the server's.")
        var timestamping = false

        @Option("--input-file <file>", "Also download the URLs in this file, one per line; - for standard input; also -i.")
        var lists: [String] = []

        @Flag("--fail -f", "Exit with 22 if the server answers 400 or more: the default.", visibility: .hidden)
        var fail = false
    }

    static let configuration = CommandConfiguration(
        commandName: "download",
        abstract: "Downloads a file.",
        discussion: """
            The file appears when it is complete. Ctrl-C, or a lost connection, leaves NAME.resume and NAME.part beside it; \
            --resume continues from them, also after this command was killed, or from a NAME that curl or wget left, and starts over if \
            that is not possible. HTTP errors are failures (22).
            """
    )

    @Argument(help: ArgumentHelp("The URLs; without a scheme, http:// is assumed.", valueName: "url"))
    var urls: [String] = []

    @OptionGroup(title: "Common options") var result: Result

    @OptionGroup(title: "File options") var file: OutputFileOptions

    @OptionGroup var options: RequestOptions

    func validate() throws {
        try refuse(if: urls.isEmpty && result.lists.isEmpty, "No URL was given.")
        try refuse(if: !(1...6 ~= result.segments), "--segments must be from 1 to 6.")
        let isSeveral = urls.count > 1 || !result.lists.isEmpty
        try refuse(
            if: isSeveral && (result.output != nil || result.checksum != nil),
            "--output and --checksum accept only one URL.")
        try refuse(if: result.timestamping && result.resume, "--timestamping and --resume are mutually exclusive.")
    }

    func run() async throws { try await options.perform(downloadAll) }

    /// Downloads the files one after the other; if some downloads fail, the last failure is the command's result.
    private func downloadAll() async throws {
        var listed: [String] = []
        for list in result.lists { listed += try AddressOptions.addresses(in: list) }
        var last: ToolFailure?
        for url in urls + listed {
            if let failure = last {
                options.reportable(failure).show()
                last?.message = nil
            }
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
