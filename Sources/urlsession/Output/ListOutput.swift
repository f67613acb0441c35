//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import ArgumentParser
import Foundation

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

    /// - Parameters:
    ///   - items: What is listed.
    ///   - fits: Whether cells are cut on a terminal, so that each item has one line there.
    /// - Throws: That they cannot be written.
    func write<Item: ListItem>(_ items: [Item], fits: Bool = false) throws {
        let columns = fits && StandardOutput.isTerminal ? TerminalWidth.size(of: STDOUT_FILENO).columns : nil
        try StandardOutput.write(
            json ? JSONText.of(items) : TextTable.text(items.map(\.row), titles: Item.titles, columns: columns))
    }
}
