//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
internal import Foundation
internal import LoadingModel

/// `connectionProxyDictionary` as it was set; the keys are those of CFNetwork.
struct ProxyDictionary: Sendable {
    let values: [String: PropertyListValue]

    /// What is not of a property list is left out.
    init(_ dictionary: [AnyHashable: Any]) {
        var values: [String: PropertyListValue] = [:]
        for (key, value) in dictionary {
            if let key = key.base as? String, let value = PropertyListValue(value) { values[key] = value }
        }
        self.values = values
    }

    var dictionary: [AnyHashable: Any] {
        var dictionary: [AnyHashable: Any] = [:]
        for (key, value) in values { dictionary[key] = value.object }
        return dictionary
    }

    /// Nil where no proxy is enabled.
    var settings: ProxySettings? {
        var settings = ProxySettings()
        settings.http = server("HTTP", port: 80)
        settings.https = server("HTTPS", port: 443)
        guard settings.http != nil || settings.https != nil else { return nil }
        if case .array(let items) = values["ExceptionsList"] { settings.exceptions = items.compactMap(\.string) }
        settings.excludesSimpleHostnames = values["ExcludeSimpleHostnames"]?.integer ?? 0 != 0
        settings.user = values["kCFProxyUsernameKey"]?.string
        settings.password = values["kCFProxyPasswordKey"]?.string
        return settings
    }

    private func server(_ kind: String, port: Int) -> ProxySettings.Server? {
        guard values[kind + "Enable"]?.integer ?? 0 != 0, let host = values[kind + "Proxy"]?.string, !host.isEmpty,
            let port = values[kind + "Port"].map({ $0.integer }) ?? port, 1...65_535 ~= port
        else { return nil }
        return ProxySettings.Server(host: host, port: port)
    }
}
