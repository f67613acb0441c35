// SPDX-License-Identifier: Apache-2.0

import CSystemLibraries
import LibC

/// The desktop's settings (GSettings), through GLib's GIO.
///
/// Every call blocks while the settings are read, usually from a file. A missing schema or key reads as nil, 0, false or empty.
package enum DesktopSettings {
    static let library = SystemLibrary.functions(of: ["libgio-2.0.so.0"], clib_settings_load)

    /// Returns a string setting, or the name of an enumeration's value.
    package static func text(_ schema: String, _ key: String) -> String? {
        guard let library, let text = clib_settings_text(library.table, schema, key) else { return nil }
        defer { free(text) }
        return String(cString: text)
    }

    package static func integer(_ schema: String, _ key: String) -> Int {
        library.map { Int(clib_settings_number($0.table, schema, key, 0)) } ?? 0
    }

    package static func boolean(_ schema: String, _ key: String) -> Bool {
        library.map { clib_settings_number($0.table, schema, key, 1) != 0 } ?? false
    }

    package static func list(_ schema: String, _ key: String) -> [String] {
        guard let library, let text = clib_settings_list(library.table, schema, key) else { return [] }
        defer { free(text) }
        return String(cString: text).split(separator: "\n").map(String.init)
    }
}
