//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

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
