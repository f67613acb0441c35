//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CSystemLibraries
import LibC

/// The desktop's settings (GSettings), through GLib's GIO.
///
/// Every call blocks while the settings are read, usually from a file. A missing schema or key reads as nil, 0, false or empty.
package enum DesktopSettings {
    /// The library's function table.
    ///
    /// Sendable because the function table behind the pointer is never changed or freed.
    struct Library: @unchecked Sendable {
        let functions: OpaquePointer
    }

    static let library: Library? = {
        guard let opened = SystemLibrary.open(["libgio-2.0.so.0"]) else { return nil }
        var missing: UnsafePointer<CChar>?
        guard let functions = clib_settings_load(opened.handle, &missing) else {
            opened.reject(missing: missing.map { String(cString: $0) } ?? "")
            return nil
        }
        return Library(functions: functions)
    }()

    /// Returns a string setting, or the name of an enumeration's value.
    package static func text(_ schema: String, _ key: String) -> String? {
        guard let library, let text = clib_settings_text(library.functions, schema, key) else { return nil }
        defer { free(text) }
        return String(cString: text)
    }

    package static func integer(_ schema: String, _ key: String) -> Int {
        library.map { Int(clib_settings_number($0.functions, schema, key, 0)) } ?? 0
    }

    package static func boolean(_ schema: String, _ key: String) -> Bool {
        library.map { clib_settings_number($0.functions, schema, key, 1) != 0 } ?? false
    }

    package static func list(_ schema: String, _ key: String) -> [String] {
        guard let library, let text = clib_settings_list(library.functions, schema, key) else { return [] }
        defer { free(text) }
        return String(cString: text).split(separator: "\n").map(String.init)
    }
}
