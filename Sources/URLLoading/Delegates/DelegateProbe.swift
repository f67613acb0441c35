// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Determines whether an object implements a delegate method, by calling it and detecting whether the default implementation ran.
///
/// On Apple's platforms the methods are optional, and the Objective-C runtime knows which ones a class implements. Here each method
/// is a requirement with a default implementation. During a probe, the default of the same method on the same object only marks the
/// probe: it calls no completion handler. The result is cached for each class (``DelegateForms``), so that a class is probed once
/// for each method.
///
/// The app can also call a delegate method itself, for example in an object that wraps another delegate. Then no probe is running for
/// that method of that object, and the default does what the session would do without the method.
package final class DelegateProbe: Sendable {
    package enum Form: Sendable { case completion, async }

    /// Calls the `async` form, and passes its answer to the handler of the completion-handler form; false if only the default ran.
    typealias OtherForm = @Sendable () async -> Bool

    @TaskLocal private static var current: DelegateProbe?

    private let receiver: ObjectIdentifier
    private let method: DelegateMethod
    private let form: Form
    /// Set by the default implementation.
    private let otherForm = Mutex<OtherForm?>(nil)

    private init(receiver: AnyObject, method: DelegateMethod, form: Form) {
        self.receiver = ObjectIdentifier(receiver)
        self.method = method
        self.form = form
    }

    /// Calls a method that has no result, or a method's completion-handler form; returns the other form if only the default ran.
    ///
    /// If only the default ran, the completion handler was not called, and only the other form calls it.
    static func run(_ method: DelegateMethod, on receiver: AnyObject, _ call: () -> Void) -> OtherForm? {
        let probe = DelegateProbe(receiver: receiver, method: method, form: .completion)
        $current.withValue(probe) { call() }
        return probe.otherForm.withLock { $0 }
    }

    /// Calls a method in its `async` form; returns the answer, or nil if only the default ran.
    static func runAsync<Answer>(
        _ method: DelegateMethod, on receiver: AnyObject, _ call: () async -> Answer
    ) async -> Answer? {
        let probe = DelegateProbe(receiver: receiver, method: method, form: .async)
        let answer = await $current.withValue(probe) { await call() }
        return probe.otherForm.withLock { $0 == nil } ? answer : nil
    }

    /// Records the call of a default implementation, if a probe is running; every default implementation calls this function first.
    ///
    /// Returns true if a probe recorded the call; the default implementation must then do nothing else.
    static func note(
        _ method: DelegateMethod, _ form: Form = .completion, on receiver: AnyObject, otherForm: @escaping OtherForm = { false }
    ) -> Bool {
        guard let probe = current, probe.method == method, probe.form == form,
            probe.receiver == ObjectIdentifier(receiver)
        else { return false }
        probe.otherForm.withLock { $0 = otherForm }
        return true
    }
}
