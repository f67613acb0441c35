//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Lists for people: a title line, and a line for each row, columns below one another, the last one as long as it is.
enum TextTable {
    /// Nothing where there are no rows.
    static func text(_ rows: [[String]], titles: [String]) -> String {
        guard !rows.isEmpty else { return "" }
        let rows = [titles] + rows.map { $0.map { harmless($0) } }
        var widths: [Int] = []
        for row in rows {
            for (column, cell) in row.enumerated() {
                if column == widths.count { widths.append(0) }
                widths[column] = max(widths[column], cell.count)
            }
        }
        return rows.map { line($0, widths) + "\n" }.joined()
    }

    private static func line(_ row: [String], _ widths: [Int]) -> String {
        var line = ""
        for (column, cell) in row.enumerated() {
            line += cell
            if column + 1 < row.count {
                line += String(repeating: " ", count: widths[column] - cell.count + 2)
            }
        }
        return line
    }

    /// Servers choose these words: none of them moves the cursor, or turns the line around.
    static func harmless(_ text: String, keeping kept: Set<Unicode.Scalar> = []) -> String {
        replacing(in: text, keeping: kept) { $0.escaped(asASCII: true) }
    }

    static func replacing(
        in text: String, keeping kept: Set<Unicode.Scalar>, by escape: (Unicode.Scalar) -> String
    ) -> String {
        // Nearly all text is so plain, and there may be much of it.
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
