// SPDX-License-Identifier: Apache-2.0

internal import LoadingModel

extension URLSession {
    /// An executor that runs Swift tasks on the event loop thread of the session's loads, which saves thread switches between the
    /// tasks and the loads.
    ///
    /// ```swift
    /// let page = try await Task(executorPreference: session.taskExecutor) {
    ///     let (data, _) = try await session.data(from: url)
    ///     return try JSONDecoder().decode(Page.self, from: data)
    /// }.value
    /// ```
    ///
    /// A task with this executor preference and its child tasks run on that thread, except while they run code of an actor with its
    /// own executor. An unstructured `Task { }` that such a task creates does not run on that thread. For a program that makes many
    /// small requests, the executor saves 10 to 20 % of the processor time: `Benchmarks/run` lists this case as "on its loop".
    ///
    /// **Code that runs on that thread must not block** or compute for long: meanwhile, no load of this session, or of another
    /// session on the same thread, makes progress. Sessions are distributed over one thread per core. `await` does not block;
    /// semaphores, locks held for long, `sleep`, and reading large files do.
    ///
    /// Other callers, the delegate queue and completion handlers are not affected. Every session, including the shared session,
    /// keeps the same executor for its lifetime. The executor can be used even after the session was invalidated or deallocated.
    ///
    /// Not in Apple's API.
    public var taskExecutor: any TaskExecutor { equipment.service.taskExecutor }
}
