// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession background upload`: starts an upload that continues after the tool has exited.
struct BackgroundUploadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upload",
        abstract: "Starts an upload that continues after the command has exited.",
        discussion: """
            The file is read while it is sent: do not change it until then. If the URL ends with a slash, the file's name is appended. \
            If the upload fails, the reason is written to FILE.error, or beside the file of --response.
            """
    )

    @Argument(help: "The file.", completion: .file())
    var file: String

    @Argument(help: "The URL to send the file to.")
    var url: String

    @Option(name: [.customShort("X"), .customLong("request")], help: "The request method; PUT by default.")
    var method: String?

    @Option(help: ArgumentHelp("Write the response's body to this file.", valueName: "file"), completion: .file())
    var response: String?

    @Flag(help: "Replace an existing response file.")
    var force = false

    @OptionGroup var options: BackgroundTransferOptions

    func run() async throws {
        guard access(file, R_OK) == 0 else {
            throw ToolFailure(26, "cannot read \(file): \(String(cString: strerror(errno)))")
        }
        let source = URL(fileURLWithPath: file).standardizedFileURL
        var target = try BackgroundTransferOptions.url(url)
        if target.absoluteString.hasSuffix("/") { target.appendPathComponent(source.lastPathComponent) }
        var request = options.request(for: target)
        request.httpMethod = method ?? "PUT"
        if request.value(forHTTPHeaderField: "Content-Type") == nil {
            request.setValue("application/octet-stream", forHTTPHeaderField: "Content-Type")
        }
        let response = response.map { URL(fileURLWithPath: $0).standardizedFileURL.path }
        let orders = BackgroundOrders(options)
        try orders.add(target, TransferNote(target: response, place: response ?? source.path, force: force)) {
            [request] session in
            session.uploadTask(with: request, fromFile: source)
        }
        try await orders.conclude()
    }
}
