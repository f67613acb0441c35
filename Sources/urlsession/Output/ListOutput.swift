//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import ArgumentParser

/// One thing that a `list` command shows: as JSON what a program reads, and a row for people.
protocol ListItem: Encodable {
    var row: [String] { get }
}

/// How the `list` commands show what there is: a line for each item, or JSON.
struct ListOutput: ParsableArguments {
    @Flag(help: "Show them as JSON.")
    var json = false

    func write(_ items: [some ListItem]) throws {
        try StandardOutput.write(json ? JSONText.of(items) : TextTable.text(items.map(\.row)))
    }
}
