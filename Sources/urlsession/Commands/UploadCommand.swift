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

/// `urlsession upload`: a file, or standard input, as a request's body.
struct UploadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upload",
        abstract: "Sends a file.",
        discussion: "A URL that ends with a slash gets the file's name. HTTP errors are failures (22)."
    )

    @Argument(help: "The file; - is standard input.")
    var file: String

    @Argument(help: "Where to send it.")
    var url: String

    @OptionGroup var options: RequestOptions

    @Option(name: .shortAndLong, help: ArgumentHelp("Write the response's body to this file.", valueName: "file"))
    var output: String?

    @Flag(name: .shortAndLong, help: "Show the response's headers before its body.")
    var include = false

    func run() async throws {
        do {
            try await send()
        } catch let failure as ToolFailure {
            throw options.quieted(failure)
        }
    }

    private func send() async throws {
        let isStream = file == "-"
        if !isStream, access(file, R_OK) != 0 {
            throw ToolFailure(26, "cannot read \(file): \(String(cString: strerror(errno)))")
        }
        let visit = try options.visit(url)
        var target = visit.url
        if !isStream, target.absoluteString.hasSuffix("/") {
            target.appendPathComponent(URL(fileURLWithPath: file).lastPathComponent)
        }
        var request = options.request(for: target)
        request.httpMethod = options.method ?? "PUT"
        if request.value(forHTTPHeaderField: "Content-Type") == nil {
            request.setValue("application/octet-stream", forHTTPHeaderField: "Content-Type")
        }
        let sink = BodySink(path: output)
        let observer = TransferObserver(
            plan: options.plan(showsHeaders: include, failsOnHTTPError: true), answers: visit.answers, sink: sink,
            meter: options.silent ? nil : ProgressMeter(),
            bodyStream: { InputStream(fileAtPath: "/dev/stdin") }
        )
        let session = URLSession(configuration: visit.configuration, delegate: observer, delegateQueue: nil)
        let task =
            isStream
            ? session.uploadTask(withStreamedRequest: request)
            : session.uploadTask(with: request, fromFile: URL(fileURLWithPath: file))
        let outcome = await observer.load(task)
        session.finishTasksAndInvalidate()
        try options.conclude(outcome)
        do {
            try sink.close()
        } catch {
            throw ToolFailure(23, error.message)
        }
    }
}
