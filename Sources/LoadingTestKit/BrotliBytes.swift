//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// Bodies in brotli (RFC 7932), for tests of the decoder.
package enum BrotliBytes {
    /// What the command-line tool makes of a body.
    package static func compress(_ content: some Sequence<UInt8>, _ options: [String] = []) throws -> [UInt8] {
        try CompressionTool.run(ServerProcess.program("brotli", package: "brotli"), ["-c"] + options, on: content)
    }

    /// 128 MiB of zeros, in 102 bytes and with a window of 16 MiB: `brotli -q 9 -w 24`.
    package static let bomb = [UInt8](
        Data(
            base64Encoded: """
                z///fwAkAOKxQHLv//n//w+ABEAcFoDu/T////8BkACIwwLQvf/n//8/ABIAcVgAuvf//P//B0ACIA4LQPf+n////wBIAMRhAeje//P//x8A\
                CYA4LADd+3/+//8DIAEQhwWge/8/
                """
        ) ?? Data()
    )
    package static let bombLength: Int64 = 128 << 20
}

/// A program that compresses what it reads.
enum CompressionTool {
    static func run(_ program: String, _ options: [String], on content: some Sequence<UInt8>) throws -> [UInt8] {
        let directory = try TemporaryDirectory()
        let input = try directory.write(content, to: "input")
        let output = directory.file("output")
        let errors = directory.file("errors")
        try ServerProcess.run(
            ServerProcess.Order([program] + options, input: input, output: .file(output), errors: .file(errors)))
        return [UInt8](try Data(contentsOf: output))
    }
}
