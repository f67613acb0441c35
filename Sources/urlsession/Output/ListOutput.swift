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
    /// What stands above the rows.
    static var titles: [String] { get }
    var row: [String] { get }
}

/// How the `list` commands show what there is: a line of titles and one for each item, or JSON.
struct ListOutput: ParsableArguments {
    @Flag(help: "Show them as JSON.")
    var json = false

    func write<Item: ListItem>(_ items: [Item]) throws {
        try StandardOutput.write(json ? JSONText.of(items) : TextTable.text(items.map(\.row), titles: Item.titles))
    }
}
