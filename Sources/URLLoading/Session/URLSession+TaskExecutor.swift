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
    /// An executor that runs Swift tasks on the event loop thread of the session's loads, so that calling the session and receiving
    /// results needs no thread switch.
    ///
    /// ```swift
    /// let page = try await Task(executorPreference: session.taskExecutor) {
    ///     let (data, _) = try await session.data(from: url)
    ///     return try JSONDecoder().decode(Page.self, from: data)
    /// }.value
    /// ```
    ///
    /// A task with this executor preference and its child tasks run on that thread, except in code of an actor with its own
    /// executor. A `Task { }` that it creates does not run there. For a program that makes many small requests, this saves 10 to
    /// 20 % of the processor time: `Benchmarks/run` lists it as "on its loop".
    ///
    /// **Code that runs there must not block** or compute for long: meanwhile, no load of this session makes progress, and no load
    /// of other sessions on the same thread does (sessions are distributed over one thread per core). `await` does not block;
    /// semaphores, locks held for long, `sleep`, and reading large files do.
    ///
    /// Other callers, the delegate queue and completion handlers are not affected. A session keeps the same executor for its
    /// lifetime, including the shared session. The executor can be used even after the session was invalidated or deallocated.
    ///
    /// Not in Apple's API.
    public var taskExecutor: any TaskExecutor { equipment.service.taskExecutor }
}
