// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// Reports stored cookies and responses for a load, if the user requests that.
enum DoctorStores {
    static func cookies(_ url: URL, isRequested: Bool) -> DoctorReport.Step {
        guard isRequested else { return .init(.cookies, .none, ["not examined without --stores"]) }
        let names = (HTTPCookieStorage.shared.cookies(for: url.withoutUserInfo) ?? []).map(\.name)
        let line =
            names.isEmpty
            ? "none would be sent" : "\"get\" would send these, the doctor does not: \(names.joined(separator: ", "))"
        return .init(.cookies, names.isEmpty ? .none : .good, [line], ["names": names])
    }

    static func cache(_ url: URL, _ answer: HTTPURLResponse?, isRequested: Bool) -> DoctorReport.Step {
        let stored =
            isRequested
            ? URLCache.shared.cachedResponse(for: URLRequest(url: url.withoutUserInfo))?.response as? HTTPURLResponse : nil
        var lines: [String] = []
        if let stored {
            let left = lifetime(stored).map { $0 - age(stored) }
            lines.append(
                "a response with status \(stored.statusCode) is stored, \(left.map { $0 > 0 ? "fresh for \($0) s more" : "stale for \(-$0) s" } ?? "without a freshness lifetime")"
            )
        } else {
            lines.append(isRequested ? "nothing is stored" : "not examined without --stores")
        }
        if let answer { lines.append(storabilityText(answer)) }
        return .init(
            .cache, stored == nil ? .none : .good, lines, ["stored": [stored.map { "\($0.statusCode)" }].compactMap { $0 }])
    }

    private static func storabilityText(_ answer: HTTPURLResponse) -> String {
        let field = (answer.value(forHTTPHeaderField: "Cache-Control") ?? "").lowercased()
        if field.contains("no-store") { return "the response must not be stored (no-store)" }
        if let lifetime = lifetime(answer) { return "the response may be stored, and is fresh for \(lifetime) s" }
        return "the response does not state how long it is fresh"
    }

    /// Returns the freshness lifetime that a response declares, in seconds.
    private static func lifetime(_ response: HTTPURLResponse) -> Int64? {
        let field = response.value(forHTTPHeaderField: "Cache-Control") ?? ""
        if field.lowercased().contains("no-cache") { return 0 }
        if let seconds = seconds("max-age", in: field) { return seconds }
        guard let end = response.value(forHTTPHeaderField: "Expires").flatMap(HTTPTime.date),
            let begin = response.value(forHTTPHeaderField: "Date").flatMap(HTTPTime.date)
        else { return nil }
        return max(0, clampedSeconds(end.timeIntervalSince(begin)))
    }

    private static func age(_ response: HTTPURLResponse) -> Int64 {
        let said = response.value(forHTTPHeaderField: "Age").flatMap(deltaSeconds) ?? 0
        let date = response.value(forHTTPHeaderField: "Date").flatMap(HTTPTime.date)
        return min(max(said, date.map { clampedSeconds(Date().timeIntervalSince($0)) } ?? 0), most)
    }

    /// The largest number of seconds that this type uses, which is about 317 years.
    private static let most: Int64 = 10_000_000_000

    /// Parses a number of seconds; a number that is too large becomes the largest one (RFC 9111, section 1.2.2).
    private static func deltaSeconds(_ text: String) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
        return min(Int64(text) ?? most, most)
    }

    private static func clampedSeconds(_ seconds: TimeInterval) -> Int64 {
        Int64(exactly: min(max(seconds, -1e10), 1e10).rounded(.towardZero)) ?? 0
    }

    /// Returns the value of a directive with a number, such as `max-age=600`.
    static func seconds(_ name: String, in field: String) -> Int64? {
        for part in field.lowercased().split(whereSeparator: { ",;".contains($0) }) {
            let words = part.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            guard words.count == 2, words[0] == name, let number = deltaSeconds(words[1].trimmingCharacters(in: ["\""]))
            else { continue }
            return number
        }
        return nil
    }
}

/// Describes which setting determines the proxies of a load.
enum DoctorProxies {
    static func source(_ login: LoginOptions, isSecure: Bool) -> String {
        if login.proxy != nil { return "--proxy" }
        let environment = ProcessInfo.processInfo.environment
        let names =
            isSecure ? ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] : ["http_proxy", "all_proxy", "ALL_PROXY"]
        if let name = names.first(where: { environment[$0]?.isEmpty == false }) { return "\(name) in the environment" }
        return "the desktop's settings, or their script (PAC)"
    }

    static func reasonForNoProxy(_ login: LoginOptions, host: String) -> String {
        if login.proxy == "" { return "as set by --proxy" }
        let environment = ProcessInfo.processInfo.environment
        let names = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        let isNamed = login.proxy != nil || names.contains { environment[$0]?.isEmpty == false }
        return isNamed
            ? "since \(login.noProxy != nil ? "--noproxy" : "no_proxy") excludes \(host)" : "since no proxy is configured"
    }
}
