// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Runs ``ProgramSecurityProbe`` in a process.
enum ProgramRun {
    static let environment = ProcessInfo.processInfo.environment
    static let (urlsKey, proxyKey, reportKey) = ("PROBED_URLS", "PROBED_PROXY", "PROBED_REPORT")
    static let strict = "PROBED_STRICTLY"
    /// The file for the outcomes, in a process made for the probe.
    static var report: String? { environment[reportKey] }

    /// Runs the probe in a process, with an Info.plist beside its executable if one is given.
    ///
    /// If `infoPropertyList` is empty, the Info.plist is a symbolic link to itself, which even root cannot open.
    static func run(
        _ urls: [String], proxy: Int, infoPropertyList: String?, environment: [String: String]
    ) async throws -> [String] {
        let folder = try TemporaryDirectory()
        var executable = try SeparateProcess.executable()
        if let infoPropertyList {
            let copy = folder.file("program/" + executable.lastPathComponent)
            let list = try folder.write(infoPropertyList.utf8, to: "program/Info.plist")
            if infoPropertyList.isEmpty {
                try FileManager.default.removeItem(at: list)
                try FileManager.default.createSymbolicLink(atPath: list.path, withDestinationPath: list.path)
            }
            do {
                try FileManager.default.linkItem(at: executable, to: copy)
            } catch {
                try FileManager.default.copyItem(at: executable, to: copy)
            }
            executable = copy
        }
        var variables: [String: String?] = [
            urlsKey: urls.joined(separator: " "), proxyKey: "\(proxy)", reportKey: folder.file("report").path,
            "HOME": folder.path,
            "XDG_DATA_HOME": folder.path, "XDG_CACHE_HOME": folder.path, "XDG_STATE_HOME": folder.path,
        ]
        for key in ["NSAllowsArbitraryLoads", "SSL_CERT_FILE", "SSL_CERT_DIR", strict] { variables.updateValue(nil, forKey: key) }
        for (key, value) in environment { variables[key] = value }
        try await SeparateProcess.run("ProgramSecurityProbe", by: executable, environment: variables)
        return try String(contentsOf: folder.file("report"), encoding: .utf8).split(separator: "\n").map(String.init)
    }
}
