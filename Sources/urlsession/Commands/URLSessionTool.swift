// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// The command-line tool; it uses only the public API, except to manage background transfers, and to make changed cookies and
/// credentials durable.
struct URLSessionTool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "urlsession",
        abstract: "Loads URLs.",
        discussion: """
            Without a command, get is assumed: "urlsession URL" is "urlsession get URL". It accepts curl's options.

            Exit codes are curl's: 0 success, 1 unsupported protocol, 2 wrong usage, 3 malformed URL, 5 could not resolve proxy, \
            6 could not resolve host, 7 could not connect, 8 protocol violation by the server, 18 partial body, \
            22 HTTP error with --fail, 23 write error, 26 read error, 28 timed out, 35 TLS handshake, 47 too many redirects, \
            52 empty reply, 56 receive failure, 58 client certificate, 60 certificate refused, 61 bad content encoding, \
            67 login denied, 78 not in the cache, 90 public key not pinned, 130 interrupted.

            Cookies, responses and passwords are stored, and used by later runs; see "urlsession cookies", "urlsession cache", \
            "urlsession credentials", --no-cookies and --no-cache. The server is still asked whether a stored response is valid, \
            unless "urlsession get" is given --cached or --offline.
            """,
        version: "urlsession \(URLSession.libraryVersion)",
        subcommands: [
            GetCommand.self, DownloadCommand.self, UploadCommand.self, WebSocketCommand.self, StreamCommand.self,
            BackgroundCommand.self,
            CookiesCommand.self,
            CacheCommand.self, CredentialsCommand.self, NetworkCommand.self, DoctorCommand.self, WaterfallCommand.self,
        ]
    )
}

@main
enum EntryPoint {
    static func main() async {
        // SIGPIPE is ignored, so that a load reports a closed pipe as a write error with a message and an exit code; a list command
        // ends silently instead (StandardOutput).
        signal(SIGPIPE, SIG_IGN)
        do {
            // All command lines are checked before the first is carried out.
            let commands = try CommandLineWords.read(Array(CommandLine.arguments.dropFirst()))
            if commands.count > 1 { for words in commands { _ = try URLSessionTool.parseAsRoot(words) } }
            try await perform(commands)
        } catch let failure as ToolFailure {
            failure.show()
            exit(failure.code)
        } catch {
            guard URLSessionTool.exitCode(for: error) == .validationFailure else {
                URLSessionTool.exit(withError: error)
            }
            StandardError.print(URLSessionTool.fullMessage(for: error))
            exit(2)
        }
    }

    /// Carries out the command lines; as with several URLs, the result of the last command line is the program's result.
    private static func perform(_ commands: [[String]]) async throws {
        defer { SharedSessions.current.end() }
        var last: ToolFailure?
        for words in commands {
            if last != nil, words.contains("--fail-early") { break }
            last?.show()
            last = nil
            do {
                var command = try URLSessionTool.parseAsRoot(words)
                if var asynchronous = command as? any AsyncParsableCommand {
                    try await asynchronous.run()
                } else {
                    try command.run()
                }
            } catch let failure as ToolFailure {
                last = failure
            }
        }
        if let last { throw last }
    }
}
