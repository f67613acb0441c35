//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import ArgumentParser

/// The options that say where a response goes, and how much of it.
struct ResultOptions: ParsableArguments {
    @Option(name: .shortAndLong, help: ArgumentHelp("Write the body to this file.", valueName: "file"), completion: .file())
    var output: String?

    @Flag(name: [.customShort("O"), .customLong("remote-name")], help: "Write the body to a file of the URL's name.")
    var takesName = false

    @Flag(name: .shortAndLong, help: "Show the response's headers before its body.")
    var include = false

    @Flag(name: [.customShort("I"), .long], help: "Ask for the headers alone (HEAD).")
    var head = false

    @Flag(name: .shortAndLong, help: "Show no body and exit with 22 when the server answers 400 or more.")
    var fail = false

    func validate() throws {
        if output != nil, takesName {
            throw ValidationError("--output and --remote-name exclude each other.")
        }
    }
}
