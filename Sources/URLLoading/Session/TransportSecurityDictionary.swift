// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import HTTPRules
internal import LoadingStores

/// The `NSAppTransportSecurity` dictionary that was set on a configuration.
struct TransportSecurityDictionary: Sendable {
    let values: [String: any Sendable]
    let rules: AppTransportSecurity

    /// If the dictionary cannot be parsed, the strictest rules apply: no exception is granted.
    init(_ dictionary: [String: Any]) {
        values = PropertyListValue.items(dictionary) ?? [:]
        guard values.count == dictionary.count,
            let data = try? PropertyListSerialization.data(fromPropertyList: values, format: .binary, options: 0),
            let rules = try? AppTransportSecurity(propertyList: data)
        else {
            var rules = AppTransportSecurity.strict
            rules.pinFault = "the dictionary set as appTransportSecurity is not a property list"
            self.rules = rules
            return
        }
        self.rules = rules
    }
}

/// The App Transport Security rules of the program, from its `Info.plist` and its environment.
enum ProgramSecurity {
    static let rules: AppTransportSecurity = {
        let rules = readRules()
        for warning in rules.warnings { StoreWarnings.warn("NSAppTransportSecurity: \(warning)") }
        return allowsArbitraryLoads ? rules.allowingArbitraryLoads() : rules
    }()

    private static func readRules() -> AppTransportSecurity {
        do {
            return try infoPropertyList().map { try AppTransportSecurity(propertyList: $0) } ?? .strict
        } catch {
            // The unreadable file could contain pins, and it is unknown for which hosts.
            var rules = AppTransportSecurity.strict
            rules.pinFault = "the program's Info.plist cannot be read"
            return rules
        }
    }

    /// Whether the environment variable `NSAllowsArbitraryLoads` is `YES`, `TRUE` or `1` (case-insensitive), as an aid while a server
    /// is migrated to HTTPS.
    private static var allowsArbitraryLoads: Bool {
        ["YES", "TRUE", "1"].contains(ProcessInfo.processInfo.environment["NSAllowsArbitraryLoads"]?.uppercased())
    }

    /// The dictionary of the main bundle, or the `Info.plist` beside the executable; nil if neither exists.
    private static func infoPropertyList() throws -> Data? {
        if let dictionary = Bundle.main.infoDictionary?["NSAppTransportSecurity"] {
            return try PropertyListSerialization.data(fromPropertyList: dictionary, format: .binary, options: 0)
        }
        guard let executable = Bundle.main.executableURL ?? URL(string: "file:///proc/self/exe")?.resolvingSymlinksInPath() else {
            return nil
        }
        do {
            return try Data(contentsOf: executable.deletingLastPathComponent().appending(path: "Info.plist"))
        } catch CocoaError.fileReadNoSuchFile {
            return nil
        }
    }
}
