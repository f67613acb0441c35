//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
internal import Foundation
internal import HTTPRules
internal import LoadingStores

/// The `NSAppTransportSecurity` dictionary as it was set on a configuration.
struct TransportSecurityDictionary: Sendable {
    let values: [String: PropertyListValue]
    let rules: AppTransportSecurity

    /// What cannot be read has the strictest meaning: what it was to allow is not.
    init(_ dictionary: [String: Any]) {
        values = PropertyListValue.items(dictionary) ?? [:]
        let object = values.mapValues(\.object)
        guard values.count == dictionary.count,
            let data = try? PropertyListSerialization.data(fromPropertyList: object, format: .binary, options: 0),
            let rules = try? AppTransportSecurity(propertyList: data)
        else {
            var rules = AppTransportSecurity.strict
            rules.pinFault = "the dictionary set as appTransportSecurity is no property list"
            self.rules = rules
            return
        }
        self.rules = rules
    }
}

/// What the program says of itself: in its `Info.plist`, and in its environment.
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
            // Nobody knows which hosts it pins.
            var rules = AppTransportSecurity.strict
            rules.pinFault = "the program's Info.plist cannot be read"
            return rules
        }
    }

    /// The environment's word, for people who move a server over.
    private static var allowsArbitraryLoads: Bool {
        ["YES", "TRUE", "1"].contains(ProcessInfo.processInfo.environment["NSAllowsArbitraryLoads"]?.uppercased())
    }

    /// That of the main bundle, or the one beside the executable; nil where there is none.
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
