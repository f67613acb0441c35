// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// The options for a request's body or, with `--get`, its query.
struct BodyOptions: ParsableArguments {
    @Option(
        "-d --data --data-ascii <body>",
        "A body to POST; @file reads a file without its line breaks, - standard input; several are joined with &.",
        transform: DataPiece.plain)
    var data: [DataPiece] = []

    @Option("--data-binary <body>", "Like --data, but the file is sent unchanged.", transform: DataPiece.binary)
    var binary: [DataPiece] = []

    @Option("--data-raw <body>", "Like --data, but without the special meaning of @ and -.", transform: DataPiece.raw)
    var raw: [DataPiece] = []

    @Option(
        "--data-urlencode <data>",
        "Like --data, but percent-encoded: content, =content, name=content, @file or name@file.", transform: DataPiece.encoded)
    var encoded: [DataPiece] = []

    @Option("--json <body>", "A JSON body to POST, read like --data.")
    var json: [String] = []

    @Option(
        "-F --form <name=content>",
        "A field of a form to POST (multipart/form-data): name=content, name=@file to send a file or several with commas, "
            + "name=<file to send only its content; ;type=, ;filename= and ;headers= may follow.")
    var form: [String] = []

    @Option(
        "-T --upload-file <file>",
        "Send this file (PUT), - for standard input; its name is appended if the URL ends with a slash; one for each of several URLs."
    )
    var uploads: [String] = []

    @Option("--url-query <data>", "Add this to the URL's query, encoded like --data-urlencode; after a +, unchanged.")
    var queries: [String] = []

    @Flag("-G --get", "Send the content of --data in the URL's query, with GET.")
    var asQuery = false

    func validate() throws {
        let hasData = !data.isEmpty || !binary.isEmpty || !raw.isEmpty || !encoded.isEmpty
        try refuse(
            if: [hasData, !json.isEmpty, !form.isEmpty, !uploads.isEmpty].count(where: { $0 }) > 1,
            "--data, --json, --form and --upload-file are mutually exclusive.")
        try refuse(if: asQuery && (!json.isEmpty || !form.isEmpty), "--get supports only --data and --data-urlencode.")
        for field in form { _ = try FormField(field) }
    }

    /// Whether the body comes only from options and files, so that it can be sent again.
    var isRepeatable: Bool { !uploads.contains { $0 == "-" || $0 == "." } }

    var isEmpty: Bool {
        data.isEmpty && binary.isEmpty && raw.isEmpty && encoded.isEmpty && json.isEmpty && form.isEmpty && uploads.isEmpty
    }

    /// Adds the body or the query to a request.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - keepsMethod: Whether the user set the method; otherwise it becomes POST.
    ///   - omitted: The header fields that the user suppresses, in lower case.
    /// - Throws: If a file cannot be read.
    /// - Returns: The content to send as a stream; `none` if there is no body, or the request contains it.
    func add(to request: inout URLRequest, keepsMethod: Bool, omitting omitted: Set<String>) throws -> RequestContent {
        for query in queries {
            let content = query.hasPrefix("+") ? Data(query.dropFirst().utf8) : try DataPiece.encoded(query).content()
            request.url = try url(request.url, asking: content)
        }
        if !form.isEmpty {
            let body = try FormBody(form.map { try FormField($0) })
            if !keepsMethod { post(&request) }
            // The form's boundary is added to the user's media type, unless that already contains a boundary.
            let type = request.value(forHTTPHeaderField: "Content-Type") ?? "multipart/form-data"
            let boundary = type.contains("boundary=") ? "" : "; boundary=\(body.boundary)"
            request.setValue(type + boundary, forHTTPHeaderField: "Content-Type")
            setField("Content-Length", "\(body.length)", of: &request)
            return .form(body)
        }
        if !json.isEmpty {
            request.httpBody = try json.reduce(into: Data()) { $0 += try InputFile.read(argument: $1) }
            if !keepsMethod { post(&request) }
            for name in ["Content-Type", "Accept"] where !omitted.contains(name.lowercased()) {
                setField(name, "application/json", of: &request)
            }
            return .none
        }
        let pieces = (data + binary + raw + encoded).sorted { $0.order < $1.order }
        guard !pieces.isEmpty else { return .none }
        var content = Data()
        for (index, piece) in pieces.enumerated() {
            if index > 0 { content.append(UInt8(ascii: "&")) }
            content += try piece.content()
        }
        if asQuery {
            request.url = try url(request.url, asking: content)
        } else {
            request.httpBody = content
            if !omitted.contains("content-type") { setField("Content-Type", "application/x-www-form-urlencoded", of: &request) }
            if !keepsMethod { post(&request) }
        }
        return .none
    }

    private func post(_ request: inout URLRequest) {
        if (request.httpMethod ?? "GET") == "GET" { request.httpMethod = "POST" }
    }

    private func setField(_ name: String, _ value: String, of request: inout URLRequest) {
        if request.value(forHTTPHeaderField: name) == nil { request.setValue(value, forHTTPHeaderField: name) }
    }

    private func url(_ url: URL?, asking query: Data) throws(ToolFailure) -> URL? {
        guard let text = url?.absoluteString else { return nil }
        let fragment = text.firstIndex(of: "#") ?? text.endIndex
        let place = text[..<fragment]
        let separator = place.contains("?") ? (place.last.map { "?&".contains($0) } == true ? "" : "&") : "?"
        let whole = "\(place)\(separator)\(String(decoding: query, as: UTF8.self))\(text[fragment...])"
        guard let url = URL(string: whole) else { throw ToolFailure(3, "with the query that --get adds, this is not a URL") }
        return url
    }
}
