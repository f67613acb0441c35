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

/// What `--data` and `--json` send: the text itself, `@file`, or standard input by `-` or `@-`.
enum RequestBody {
    static func read(_ argument: String) throws -> Data {
        if argument == "-" || argument == "@-" {
            do {
                return try FileHandle.standardInput.readToEnd() ?? Data()
            } catch {
                throw ToolFailure(26, "cannot read standard input")
            }
        }
        guard argument.hasPrefix("@") else { return Data(argument.utf8) }
        let path = String(argument.dropFirst())
        guard let data = try? Data(contentsOf: URL(fileURLWithPath: path)) else {
            throw ToolFailure(26, "cannot read \(path)")
        }
        return data
    }

    static func add(data: String?, json: String?, to request: inout URLRequest) throws {
        guard let argument = json ?? data else { return }
        let method = request.httpMethod ?? "GET"
        if method == "GET" {
            request.httpMethod = "POST"
        }
        request.httpBody = try read(argument)
        guard json != nil else { return }
        for name in ["Content-Type", "Accept"] where request.value(forHTTPHeaderField: name) == nil {
            request.setValue("application/json", forHTTPHeaderField: name)
        }
    }
}
