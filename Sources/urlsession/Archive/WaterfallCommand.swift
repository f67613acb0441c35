// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoadingArchive

/// `urlsession waterfall`: converts an HTTP Archive (HAR) to an HTML page.
struct WaterfallCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "waterfall",
        abstract: "Converts an HTTP Archive (HAR) to an HTML page.",
        discussion: """
            The page is a single HTML file: a table of all requests, each with a bar for its phases. It contains no scripts and loads \
            nothing, whatever the archive contains.
            """
    )

    @Argument(help: "The archive, written by this or another program; - for standard input.", completion: .file())
    var file: String

    @Option("--output -o <file>", "Write the page to this file.")
    var output: String?

    func run() throws {
        let archive: HTTPArchive
        do {
            archive = try HTTPArchive(contentsOf: URL(fileURLWithPath: file == "-" ? "/dev/stdin" : file))
        } catch let error as HTTPArchive.ReadingError {
            throw ToolFailure(26, TextTable.sanitized("cannot read \(file): \(error.description)"))
        } catch {
            throw ToolFailure(26, "cannot read \(file): \(ToolFailure.reason(error))")
        }
        let page = ArchivePage(archive, name: file == "-" ? "standard input" : URL(fileURLWithPath: file).lastPathComponent)
            .html()
        guard let output, output != "-" else { return try StandardOutput.write(page) }
        // An archive may contain secrets, and so may the page made from it.
        umask(0o077)
        let sink = BodySink(path: output)
        try sink.write(Data(page.utf8))
        try sink.close()
    }
}
