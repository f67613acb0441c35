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
    /// Runs Swift tasks on the event loop thread that carries the session's loads, so that calls to the session and their results
    /// need no thread switch.
    ///
    /// ```swift
    /// let page = try await Task(executorPreference: session.taskExecutor) {
    ///     let (data, _) = try await session.data(from: url)
    ///     return try JSONDecoder().decode(Page.self, from: data)
    /// }.value
    /// ```
    ///
    /// The task runs there whenever it is not on an actor with its own executor, and so do its child tasks; a `Task { }` that it
    /// creates does not. A program that makes many small requests spends 10 to 20 % less processor time this way: `Benchmarks/run`
    /// lists it as "on its loop".
    ///
    /// **Code that runs there must not block**, nor compute for long: meanwhile no load of this session makes progress, nor any
    /// load of the other sessions that share its thread (sessions are distributed over one thread per core). `await` does not
    /// block; semaphores, locks held for long, `sleep`, and reading large files do.
    ///
    /// Other callers, the delegate queue and completion handlers are not affected. A session keeps the same executor for its
    /// lifetime, and so does the shared session. The executor can be used after the session was invalidated or deallocated.
    ///
    /// Not in Apple's API.
    public var taskExecutor: any TaskExecutor { equipment.service.taskExecutor }
}
