// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// The options that save a response's `ETag` to a file, and make a later request conditional on it.
struct EntityTagOptions: ParsableArguments {
    @Option("--etag-save <file>", "Write the response's ETag to this file.")
    var saved: String?

    @Option("--etag-compare <file>", "Load only if the ETag differs from the one in this file, which may be missing.")
    var compared: String?

    /// The value of If-None-Match; nil without `--etag-compare`.
    var condition: String? {
        guard let compared else { return nil }
        let text = (try? Data(contentsOf: URL(fileURLWithPath: compared))).map { String(decoding: $0, as: UTF8.self) } ?? ""
        let tag = text.trimmingCharacters(in: .whitespacesAndNewlines)
        return tag.isEmpty || tag.contains(where: \.isNewline) ? "\"\"" : tag
    }

    func save(_ response: URLResponse?) throws(ToolFailure) {
        let response = response as? HTTPURLResponse
        guard let saved, response?.statusCode != 304 else { return }
        let tag = response?.value(forHTTPHeaderField: "ETag") ?? ""
        try ToolFailure.describing(23, "cannot write \(saved)") {
            try Data((tag.isEmpty ? "" : tag + "\n").utf8).write(to: URL(fileURLWithPath: saved))
        }
    }
}
