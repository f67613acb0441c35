// SPDX-License-Identifier: Apache-2.0

/// Formats lists for display: a line of titles and a line for each row, in aligned columns; the last column has no fixed width.
enum TextTable {
    /// Returns the table; empty if there are no rows.
    ///
    /// - Parameters:
    ///   - rows: The cells.
    ///   - titles: The column titles.
    ///   - columns: The width of the terminal in columns, to which the lines are shortened by cutting the longest cells; nil for no
    ///     limit.
    /// - Returns: The lines.
    static func text(_ rows: [[String]], titles: [String], columns: Int? = nil) -> String {
        guard !rows.isEmpty else { return "" }
        var rows = [titles] + rows.map { $0.map { sanitized($0) } }
        if let columns { fit(&rows, columns) }
        let cells = rows.map { $0.map(width) }
        let widths = largest(cells)
        // There may be thousands of lines, so they are appended to a single buffer.
        var text: [UInt8] = []
        text.reserveCapacity(rows.count * (widths.dropLast().reduce(0, +) + 2 * widths.count + 32))
        for (row, cells) in zip(rows, cells) {
            for (column, cell) in row.enumerated() {
                text.append(contentsOf: cell.utf8)
                guard column + 1 < row.count else { continue }
                text.append(contentsOf: repeatElement(UInt8(ascii: " "), count: widths[column] - cells[column] + 2))
            }
            text.append(UInt8(ascii: "\n"))
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Cuts cells to fit the width: the widest columns first, down to the width of their titles, and then the titles.
    private static func fit(_ rows: inout [[String]], _ columns: Int) {
        guard let titles = rows.first?.map(width) else { return }
        let widths = largest(rows.map { $0.map(width) })
        let room = columns - 2 * (widths.count - 1)
        var limit = widths.max() ?? 0
        let titlesFit = titles.reduce(0, +) <= room
        func cut(_ column: Int) -> Int { min(widths[column], max(limit, titlesFit ? titles[column] : 1)) }
        while limit > 0, widths.indices.reduce(0, { $0 + cut($1) }) > room { limit -= 1 }
        guard limit < widths.max() ?? 0 else { return }
        for row in rows.indices {
            for column in rows[row].indices where column < widths.count && width(rows[row][column]) > cut(column) {
                rows[row][column] = rows[row][column].prefix(max(0, cut(column) - 1)) + "…"
            }
        }
    }

    /// Returns the largest number of each column.
    private static func largest(_ rows: [[Int]]) -> [Int] { rows.reduce(rows[0]) { zip($0, $1).map { max($0, $1) } } }

    /// Returns the number of characters, with a fast path for ASCII, because nearly all cells are ASCII.
    private static func width(_ cell: String) -> Int {
        cell.utf8.allSatisfy { 0x20..<0x7F ~= $0 } ? cell.utf8.count : cell.count
    }

    /// Escapes control and format characters in a server's text, because they could move the cursor or change the text direction.
    static func sanitized(_ text: String, keeping kept: Set<Unicode.Scalar> = []) -> String {
        replacing(in: text, keeping: kept) { $0.escaped(asASCII: true) }
    }

    static func replacing(
        in text: String, keeping kept: Set<Unicode.Scalar>, by escape: (Unicode.Scalar) -> String
    ) -> String {
        // Fast path: nearly all text is plain ASCII, and there may be a lot of text.
        let keepsNewlines = kept.contains("\n")
        if text.utf8.allSatisfy({ 0x20..<0x7F ~= $0 || $0 == 0x0A && keepsNewlines }) { return text }
        var shown = ""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator:
                shown += kept.contains(scalar) ? String(scalar) : escape(scalar)
            default: shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }
}
