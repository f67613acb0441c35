// SPDX-License-Identifier: Apache-2.0

import Foundation

// Stand-ins for the parts of the tool that its parsers use. A fuzzer cannot import the tool, because the tool is a program; so
// the folders of fuzzers have links to this file and to the parsers.

struct ToolFailure: Error {
    let code: Int32
    let message: String?

    init(_ code: Int32, _ message: String?) {
        self.code = code
        self.message = message
    }
}

struct Login: Equatable {
    let user: String
    let password: String
}

enum ByteText {
    static func size(_ count: Int64) -> String { "\(count) bytes" }
}

enum StandardError {
    static func print(_ line: String) {}
}

enum InputFile {
    static func take(_ path: String) throws(ToolFailure) -> Data { throw ToolFailure(26, path) }
}
