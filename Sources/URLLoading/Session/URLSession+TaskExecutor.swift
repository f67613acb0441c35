//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import LoadingModel

extension URLSession {
    /// Runs Swift tasks on the thread that carries the session's loads, so that calling the session and hearing from it changes no
    /// threads.
    ///
    /// ```swift
    /// let page = try await Task(executorPreference: session.taskExecutor) {
    ///     let (data, _) = try await session.data(from: url)
    ///     return try JSONDecoder().decode(Page.self, from: data)
    /// }.value
    /// ```
    ///
    /// The task runs there whenever it is not on an actor with an executor of its own, and so do its child tasks; a `Task { }` that it
    /// makes does not. A program that makes many small requests spends 10 to 20 % less processor time in this way: `Benchmarks/run` has it
    /// as "on its loop".
    ///
    /// **Code that runs there must not block**, nor compute for long: meanwhile no load of this session goes on, nor of the others
    /// that share its thread (sessions are spread over one for each core). What waits by `await` is no hindrance; semaphores, locks
    /// that are held for long, `sleep`, and reading large files are.
    ///
    /// Other callers, the delegate queue and completion handlers are not affected. A session has the same executor from beginning to
    /// end, the shared session too; it can be used after the session was invalidated or is gone.
    ///
    /// Not in Apple's API.
    public var taskExecutor: any TaskExecutor { equipment.service.taskExecutor }
}
