// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession upload`: sends a file or standard input as a request body.
struct UploadCommand: AsyncParsableCommand {
    /// The options for the response.
    struct Result: ParsableArguments {
        @Option("--output -o <file>", "Write the response's body to this file.")
        var output: String?

        @Flag("--include -i", "Show the response's headers before its body.")
        var include = false

        @Flag(
            "--resume",
            "For ftp: append the missing rest to the server's file, which is assumed to be the beginning of this one.")
        var resume = false

        @Flag("--fail -f", "Exit with 22 if the server answers 400 or more: the default.", visibility: .hidden)
        var fail = false
    }

    static let configuration = CommandConfiguration(
        commandName: "upload",
        abstract: "Sends a file.",
        discussion: "If the URL ends with a slash, the file's name is appended. HTTP errors are failures (22)."
    )

    @Argument(help: "The file; - for standard input.", completion: .file())
    var file: String

    @Argument(help: "The URL to send the file to.")
    var url: String

    @OptionGroup(title: "Common options") var result: Result

    @OptionGroup var options: RequestOptions

    func validate() throws {
        try refuse(if: file == "-" && options.retries.retry > 0, "--retry cannot send standard input twice.")
    }

    func run() async throws { try await options.perform(send) }

    private func send() async throws {
        let source = try UploadSource(file, rate: options.pace.rate)
        var options = options
        // Standard input and pipes can be read only once.
        if source.isStandardInput || source.isPipe { options.retries.retry = 0 }
        let prepared = try options.prepared(url)
        if result.resume, FTPAddress.space(prepared.url) == nil {
            throw ToolFailure(2, "upload supports --resume only for ftp and ftps URLs")
        }
        prepared.configuration.resumesFTPUploads = result.resume
        var request = options.request(for: source.target(prepared.url))
        request.httpMethod = options.method ?? "PUT"
        if request.value(forHTTPHeaderField: "Content-Type") == nil, !options.common.omittedHeaders.contains("content-type") {
            request.setValue("application/octet-stream", forHTTPHeaderField: "Content-Type")
        }
        // The server is asked even if a redirect leads to a URL with a stored response.
        if !options.ignoresCache { RequestOptions.askServer(&request) }
        try await options.transfer(prepared, to: result.output) { [request, options] session, attempts in
            var plan = options.plan(showsHeaders: result.include, failsOnHTTPError: true, attempts: attempts)
            if !source.isStandardInput { plan.recording?.sends(file: file) }
            plan.bodyStream = { source.stream() }
            let sink = BodySink(path: result.output, refusesBinaryOnTerminal: true)
            return (TransferObserver(plan, prepared.answers, to: sink), source.task(in: session, with: request))
        }
    }
}
