// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoadingArchive

/// Renders an archive as a single HTML page without scripts or external resources.
///
/// The archive's text is untrusted: it appears only as text, never as a link, a style, or the name of an element or attribute.
struct ArchivePage {
    /// The limits on the content of the page.
    private static let maximumEntries = 5000
    private static let maximumTextLength = 2000
    private static let maximumFields = 200

    private let entries: [HTTPArchive.Entry]
    private let left: Int
    private let name: String
    private let creator: String
    /// When the first entry began.
    private let begin: Date
    /// The time from `begin` to the latest end of a shown entry, in milliseconds; at least 1.
    private let span: Double

    init(_ archive: HTTPArchive, name: String) {
        let sorted = archive.entries.enumerated()
            .sorted { ($0.element.startedDateTime, $0.offset) < ($1.element.startedDateTime, $1.offset) }.map(\.element)
        let begin = sorted.first?.startedDateTime ?? Date(timeIntervalSince1970: 0)
        entries = Array(sorted.prefix(Self.maximumEntries))
        left = sorted.count - entries.count
        self.name = name
        self.begin = begin
        creator = "\(archive.creator.name) \(archive.creator.version)"
        let ends = entries.map { Self.offset($0, from: begin) + Self.time($0.time) }
        span = max(1, ends.max() ?? 1)
    }

    private static func offset(_ entry: HTTPArchive.Entry, from begin: Date) -> Double {
        time(entry.startedDateTime.timeIntervalSince(begin) * 1000)
    }

    /// Clamps a time, so that it can be formatted whatever the file contains.
    private static func time(_ milliseconds: Double) -> Double { min(max(0, milliseconds), 1e12) }

    // MARK: The page

    func html() -> String {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
        <meta name="referrer" content="no-referrer">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>\(Self.escaped("Waterfall of \(name)"))</title>
        <style>
        \(ArchivePageStyle.text)</style>
        </head>
        <body>
        <h1>\(Self.escaped(name))</h1>
        <p>\(summary)</p>
        <ul class="legend">\(Phase.allCases.map { #"<li><span class="key \#($0.rawValue)"></span>\#($0.title)</li>"# }.joined())</ul>
        <table>
        <caption>Requests in the order in which they started, on one timeline</caption>
        <thead><tr><th scope="col">Request</th><th scope="col">Status</th><th scope="col">Body</th><th scope="col">Began</th>\
        <th scope="col">Took</th><th scope="col" class="line">0 to \(Self.duration(span))</th></tr></thead>
        <tbody>
        \(entries.map(row).joined())</tbody>
        </table>
        \(left > 0 ? "<p>\(left) more are not shown.</p>\n" : "")</body>
        </html>

        """
    }

    private var summary: String {
        let bytes = entries.reduce(0.0) { $0 + Double(max(0, $1.response.bodySize)) }
        let failed = entries.count { $0.response.status == 0 || $0.response.error != nil }
        let parts = [
            "\(entries.count + left) \(entries.count + left == 1 ? "request" : "requests")", "\(Self.duration(span)) in all",
            "\(ByteText.size(Int64(min(bytes, 1e15)))) of bodies received", failed > 0 ? "\(failed) failed" : nil,
            "written by \(Self.escaped(creator))",
        ]
        return parts.compactMap { $0 }.joined(separator: " · ")
    }

    private func row(_ entry: HTTPArchive.Entry) -> String {
        let (request, response) = (entry.request, entry.response)
        let isBad = response.status == 0 || response.status >= 400 || response.error != nil
        let status = response.status == 0 ? "failed" : "\(response.status)"
        let size = response.bodySize >= 0 ? ByteText.size(min(response.bodySize, 1_000_000_000_000_000)) : "not known"
        return """
            <tr\(isBad ? #" class="bad""# : "")><th scope="row"><details><summary><b>\(Self.escaped(request.method))</b> \
            <span class="url">\(Self.escaped(request.url))</span></summary>\(details(entry))</details></th>\
            <td>\(status)\(entry.fromCache == nil ? "" : " <small>cache</small>")</td><td>\(size)</td>\
            <td>\(Self.duration(Self.offset(entry, from: begin)))</td><td>\(Self.duration(Self.time(entry.time)))</td>\
            <td class="line">\(bar(entry))</td></tr>

            """
    }

    // MARK: One entry

    private enum Phase: String, CaseIterable {
        case blocked, dns, connect, ssl, send, wait, receive

        var title: String { self == .dns ? "name lookup" : self == .ssl ? "TLS" : rawValue }
    }

    /// Returns the phases in chronological order; HAR counts TLS as part of connecting, but the page shows TLS as its own phase.
    private static func phases(_ timings: HTTPArchive.Timings) -> [(phase: Phase, time: Double)] {
        let secure = min(timings.ssl, timings.connect)
        let times: [(Phase, Double)] = [
            (.blocked, timings.blocked), (.dns, timings.dns), (.connect, timings.connect - max(0, secure)), (.ssl, secure),
            (.send, timings.send), (.wait, timings.wait), (.receive, timings.receive),
        ]
        return times.filter { $0.1 >= 0 }.map { ($0.0, time($0.1)) }
    }

    /// Returns the bar of an entry; screen readers skip the bar, because they read the numbers beside it.
    private func bar(_ entry: HTTPArchive.Entry) -> String {
        var at = Self.offset(entry, from: begin)
        let pieces = Self.phases(entry.timings).filter { $0.time > 0 }.map { phase, time in
            defer { at += time }
            return
                #"<span class="\#(phase.rawValue)" style="left:\#(percent(at));width:\#(percent(min(time, span - at)))"></span>"#
        }
        return #"<div class="bar" aria-hidden="true">\#(pieces.joined())</div>"#
    }

    private func percent(_ time: Double) -> String { ByteText.rounded(min(100, max(0, time / span * 100)), digits: 3) + "%" }

    private func details(_ entry: HTTPArchive.Entry) -> String {
        let phases = Self.phases(entry.timings).map { "\($0.phase.title) \(Self.duration($0.time))" }.joined(separator: ", ")
        let facts: [(String, String?)] = [
            ("Error", entry.response.error), ("Reason", entry.response.statusText), ("Version", entry.response.httpVersion),
            ("Server", entry.serverIPAddress), ("Connection", entry.connection), ("Type", entry.response.content.mimeType),
            ("Redirects to", entry.response.redirectURL), ("Phases", phases), ("Remark", entry.comment),
        ]
        return list(facts.compactMap { name, value in value.map { (name, $0) } }.filter { !$0.1.isEmpty })
            + "<p>Request fields</p>" + list(entry.request.headers.map { ($0.name, $0.value) })
            + "<p>Response fields</p>" + list(entry.response.headers.map { ($0.name, $0.value) })
    }

    private func list(_ facts: [(String, String)]) -> String {
        let lines = facts.prefix(Self.maximumFields).map { "<dt>\(Self.escaped($0))</dt><dd>\(Self.escaped($1))</dd>" }
        return lines.isEmpty ? "<p>None</p>" : "<dl>\(lines.joined())</dl>"
    }

    // MARK: Text

    private static func duration(_ milliseconds: Double) -> String {
        milliseconds < 10_000
            ? ByteText.rounded(milliseconds, digits: milliseconds < 100 ? 1 : 0) + " ms"
            : ByteText.rounded(milliseconds / 1000, digits: 1) + " s"
    }

    private static let entities: [Unicode.Scalar: String] = [
        "&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "'": "&#39;",
    ]

    /// Truncates long text, escapes it for use between tags and in attributes, and replaces invisible characters and those that
    /// change the text direction.
    static func escaped(_ text: String) -> String {
        var cut = text.unicodeScalars.prefix(maximumTextLength + 1)
        let isCut = cut.count > maximumTextLength
        if isCut { cut = cut.dropLast() }
        let text = TextTable.sanitized(String(String.UnicodeScalarView(cut)))
        return text.unicodeScalars.map { entities[$0] ?? String($0) }.joined() + (isCut ? "…" : "")
    }
}
