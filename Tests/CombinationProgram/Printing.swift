// SPDX-License-Identifier: Apache-2.0

import CombinationModel
import Foundation

/// Prints a failing row as a readable program, and as the command that runs it again.
enum Printing {
    static func text(_ finding: LoadFinding, _ reduced: LoadFinding, seed: UInt64) -> String {
        var lines = [
            "✘ seed \(seed), row \(finding.row)", "  reduced: swift run CombinationProgram --row \(reduced.row)",
        ]
        lines += reduced.problems.map { "    " + $0 }
        lines.append("  all that was seen:")
        lines += reduced.seen.map { "    \($0)" }
        lines += program(reduced.row).split(separator: "\n").map { "  | " + $0 }
        return lines.joined(separator: "\n")
    }

    /// The row's steps as Swift.
    static func program(_ row: Row) -> String {
        var lines: [String] = []
        var sessions: Set<String> = []
        for step in Story.steps(of: row) {
            switch step {
            case .deploy: lines.append("// another version is put on the server")
            case .enter(let phase): lines.append("// \(phase): the server answers \(phase == .main ? answer(row) : "200")")
            case .signIn(_, let login, let user):
                let who = user ?? "nobody"
                if login == .storage { lines.append("credentialStorage.setDefaultCredential(\(who), for: space)") }
                if login == .cookie { lines.append("cookieStorage.setCookie(\"who=\(who)\")") }
            case .setCookie(_, let name, let value): lines.append("cookieStorage.setCookie(\"\(name)=\(value)\")")
            case .load(let order):
                if sessions.insert(order.session.name).inserted { lines += session(order) }
                lines += load(order)
            }
        }
        return lines.joined(separator: "\n")
    }

    private static func answer(_ row: Row) -> String {
        var parts = ["\(row.answer)"]
        if row.coding != .none { parts.append("in \(row.coding)") }
        if row.end != .stays { parts.append("and the connection is \(row.end)") }
        return parts.joined(separator: " ")
    }

    private static func session(_ order: LoadOrder) -> [String] {
        let session = order.session
        var lines = ["let configuration = URLSessionConfiguration.\(session.kind)"]
        if session.trust == .sessionRoots { lines.append("configuration.tlsTrustRoots = [root]") }
        if session.trust == .pinnedRight || session.trust == .pinnedWrong {
            lines.append("configuration.appTransportSecurity = [\"NSPinnedDomains\": \(session.trust)]")
        }
        if session.route != .direct { lines.append("configuration: by \(session.route)") }
        if session.isIntercepted { lines.append("configuration: by a proxy that leads to a server with another certificate") }
        if let user = session.fieldUser { lines.append("configuration.httpAdditionalHeaders = [\"Authorization\": \(user)]") }
        if session.oneConnection { lines.append("configuration.httpMaximumConnectionsPerHost = 1") }
        let delegate =
            session.trust == .delegateAnswer ? "trusting" : session.trust == .clientCertificate ? "identified" : "delegate"
        lines.append(
            "let \(name(session)) = URLSession(configuration: configuration, delegate: \(session.hasDelegate ? delegate : "nil"), "
                + "delegateQueue: nil)")
        return lines
    }

    private static func load(_ order: LoadOrder) -> [String] {
        let user = order.login == .userInfo ? order.user.map { $0 + "@" } ?? "" : ""
        var lines = [
            "var request = URLRequest(url: \"\(order.scheme)://\(user)www.shop.localhost/\(order.name)\")  // \(order.label)"
        ]
        if order.message != .get { lines.append("request.httpMethod = \"\(order.method)\"  // \(order.message)") }
        if order.login == .requestField, let user = order.user { lines.append("request.setValue(\(user), \"Authorization\")") }
        if order.policy != .useProtocol { lines.append("request.cachePolicy or Cache-Control: \(order.policy)") }
        if let language = order.language { lines.append("request.setValue(\"\(language)\", \"X-Language\")") }
        if order.isInChild { lines.append("// in another process:") }
        lines.append("try await \(name(order.session)).\(order.way)(for: request)")
        if order.command != .none { lines.append("task.\(order.command)  // when it is: \(order.moment)") }
        return lines
    }

    private static func name(_ session: SessionOrder) -> String {
        session.name.replacingOccurrences(of: "'s", with: "s").replacingOccurrences(of: " ", with: "_")
    }
}
