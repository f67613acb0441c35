// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation

/// An item of a `list` command: encodable as JSON for programs, and as a row for display.
protocol ListItem: Encodable {
    /// The column titles.
    static var titles: [String] { get }
    var row: [String] { get }
}

/// The output of the `list` commands: a line of titles and a line for each item, or JSON.
struct ListOutput: ParsableArguments {
    @Flag("--json", "Show the list as JSON.")
    var json = false

    /// Writes the items.
    ///
    /// - Parameters:
    ///   - items: The items.
    ///   - fits: Whether cells are cut on a terminal, so that each item fits on one line.
    /// - Throws: If the items cannot be written.
    func write<Item: ListItem>(_ items: [Item], fits: Bool = false) throws {
        let columns = fits && StandardOutput.isTerminal ? TerminalWidth.size(of: STDOUT_FILENO).columns : nil
        try StandardOutput.write(
            json ? JSONText.of(items) : TextTable.text(items.map(\.row), titles: Item.titles, columns: columns))
    }
}
