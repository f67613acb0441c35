// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// `urlsession cache`: manages the stored responses, which the other commands use while they are fresh.
struct CacheCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache",
        abstract: "Shows and clears the stored responses.",
        discussion: "They are stored in XDG_CACHE_HOME, accessible only to their owner.",
        subcommands: [CacheListCommand.self, CacheShowCommand.self, CacheClearCommand.self]
    )
}
