//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import URLLoading

/// The head of a message as text, fields in alphabetical order: `allHeaderFields` keeps no other.
enum HeadText {
    static func request(_ request: URLRequest?, prefix: String) -> String {
        guard let request else { return "" }
        let line = "\(request.httpMethod ?? "GET") \(request.url?.absoluteString ?? "")"
        return text([line] + fields(request.allHTTPHeaderFields ?? [:]), prefix: prefix)
    }

    static func response(_ response: URLResponse, prefix: String) -> String {
        guard let response = response as? HTTPURLResponse else {
            return text(["\(response.mimeType ?? "unknown type"), \(response.expectedContentLength) bytes"], prefix: prefix)
        }
        return text(["HTTP \(response.statusCode)"] + fields(response.allHeaderFields), prefix: prefix)
    }

    private static func fields(_ fields: [some Hashable: some Any]) -> [String] {
        fields.map { "\($0.key): \($0.value)" }.sorted { $0.lowercased() < $1.lowercased() }
    }

    private static func text(_ lines: [String], prefix: String) -> String {
        (lines + [""]).map { prefix + $0 + "\n" }.joined()
    }
}
