// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// `make install` and `make uninstall`; a script that runs the test's build replaces the release build, and is not stripped.
@Suite(.timeLimit(.minutes(3)))
struct InstallTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    private static let installed = [
        "bin/urlsession", "libexec/urlsessiond", "share/bash-completion/completions/urlsession",
        "share/fish/vendor_completions.d/urlsession.fish",
        "share/man/man1/urlsession.1", "share/man/man8/urlsessiond.8", "share/zsh/site-functions/_urlsession",
    ]

    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    /// Runs make; `PWD` in the variables stands for the test's folder.
    private func make(_ target: String, _ variables: String..., before: String = ":") async throws -> Tool.Result {
        try await Tool.run(
            [], in: folder,
            preparation: #"""
                unset MAKEFLAGS MAKELEVEL DESTDIR PREFIX
                [ -e tool ] || printf '#!/bin/sh\nexec "%s" "$@"\n' "$0" > tool
                [ -e daemon ] || cp tool daemon
                chmod +x tool daemon; umask 077; \#(before)
                exec make -s -C "\#(Self.root.path)" \#(target) TOOL="$PWD/tool" DAEMON="$PWD/daemon" STRIP=: \
                    \#(variables.joined(separator: " "))
                """#)
    }

    private func files(below place: String) throws -> [String] {
        let all = try FileManager.default.subpathsOfDirectory(atPath: folder.file(place).path)
        return all.filter { path in
            var isFolder: ObjCBool = false
            return FileManager.default.fileExists(atPath: folder.file(place + "/" + path).path, isDirectory: &isFolder)
                && !isFolder.boolValue
        }.sorted()
    }

    private func text(_ path: String) throws -> String { try String(contentsOf: folder.file(path), encoding: .utf8) }

    @Test func `tool, manual page and completions are installed and uninstalled`() async throws {
        let place = [#"DESTDIR="$PWD/a stage""#, "PREFIX=/opt/x"]
        let installed = try await make("install", place[0], place[1])
        #expect(installed.code == 0, "\(installed.errors)")
        #expect(try files(below: "a stage") == Self.installed.map { "opt/x/" + $0 })
        for path in Self.installed {
            let facts = try FileManager.default.attributesOfItem(atPath: folder.file("a stage/opt/x/" + path).path)
            #expect(
                facts[.posixPermissions] as? Int == (path.hasPrefix("bin") || path.hasPrefix("libexec") ? 0o755 : 0o644),
                "\(path)")
        }
        let manual = try text("a stage/opt/x/share/man/man1/urlsession.1")
        #expect(manual.hasPrefix(".TH URLSESSION 1 "))
        for words in [".SH COMMANDS", ".SS cookies import", #"\fB\-\-retry\-max\-time\fR \fIseconds\fR"#] {
            #expect(manual.contains(words), "\(words)")
        }
        #expect(
            try text("a stage/opt/x/share/bash-completion/completions/urlsession").contains(
                "complete -o filenames -F _urlsession urlsession"))
        #expect(try text("a stage/opt/x/share/zsh/site-functions/_urlsession").hasPrefix("#compdef urlsession\n"))
        #expect(try text("a stage/opt/x/share/fish/vendor_completions.d/urlsession.fish").contains("complete -c 'urlsession'"))
        let removed = try await make("uninstall", place[0], place[1])
        #expect(removed.code == 0, "\(removed.errors)")
        #expect(try files(below: "a stage") == [])
    }

    @Test func `without a stage the files go directly to the prefix`() async throws {
        let installed = try await make("install", #"PREFIX="$PWD/prefix""#)
        #expect(installed.code == 0, "\(installed.errors)")
        #expect(try files(below: "prefix") == Self.installed)
    }

    @Test(arguments: ["tool", "daemon"])
    func `a tool that is older than its sources is not installed`(_ old: String) async throws {
        let result = try await make("install", #"PREFIX="$PWD/prefix""#, before: "touch -d '2000-01-01' \(old)")
        #expect(result.code != 0)
        #expect(result.errors.contains("is newer than the built programs: run 'make tool' first"), "\(result.errors)")
        #expect(try folder.names == ["daemon", "tool"])
    }
}
