// SPDX-License-Identifier: Apache-2.0

package import Foundation

/// Calls delegate methods in the form that the delegate's class implements, and reports if the class implements neither form.
package enum DelegateCall {
    /// Calls a method without a result; returns false if the object's class does not implement it.
    @discardableResult
    package static func tell(_ method: DelegateMethod, _ receiver: AnyObject, _ call: () -> Void) -> Bool {
        let type: AnyClass = type(of: receiver)
        switch DelegateForms.form(of: method, in: type) {
        case .completion, .async:
            call()
            return true
        case .absent: return false
        case nil:
            let isImplemented = DelegateProbe.run(method, on: receiver, call) == nil
            DelegateForms.record(isImplemented ? .completion : .absent, of: method, in: type)
            return isImplemented
        }
    }

    /// Calls a method with a result, in the form that the object's class implements; the completion-handler form is tried first.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - receiver: The object.
    ///   - completionForm: Calls the completion-handler form with the given handler, on the calling thread; its default
    ///     implementation knows the `async` form, which runs in a new task.
    ///   - reply: Receives each answer that the app gives, on any thread; nil if the method is not implemented.
    package static func ask<Answer: Sendable>(
        _ method: DelegateMethod, _ receiver: any AnyObject & Sendable,
        completionForm: (@escaping @Sendable (Answer) -> Void) -> Void, reply: @escaping @Sendable (Answer?) -> Void
    ) {
        let type: AnyClass = type(of: receiver)
        let form = DelegateForms.form(of: method, in: type)
        switch form {
        case .completion: completionForm { reply($0) }
        case .absent: reply(nil)
        case .async, nil:
            guard let asyncForm = DelegateProbe.run(method, on: receiver, { completionForm { reply($0) } }) else {
                return DelegateForms.record(.completion, of: method, in: type)
            }
            Task {
                let isImplemented = await asyncForm()
                if form == nil { DelegateForms.record(isImplemented ? .async : .absent, of: method, in: type) }
                if !isImplemented { reply(nil) }
            }
        }
    }

    /// Answers the app's direct call of a form that the class does not implement: calls the method's other form, or gives the
    /// session's default answer if the class lacks both forms.
    static func answer<Answer: Sendable>(
        _ method: DelegateMethod, _ receiver: any AnyObject & Sendable, otherwise fallback: Answer,
        asyncForm: @escaping @Sendable () async -> Answer, handler: @escaping @Sendable (Answer) -> Void
    ) {
        let runAsync: DelegateProbe.OtherForm = {
            guard let answer = await DelegateProbe.runAsync(method, on: receiver, asyncForm) else { return false }
            handler(answer)
            return true
        }
        if DelegateProbe.note(method, on: receiver, otherForm: runAsync) { return }
        if DelegateForms.form(of: method, in: type(of: receiver)) == .absent { return handler(fallback) }
        Task { if await !runAsync() { handler(fallback) } }
    }

    /// Answers the app's direct call of an `async` form in the same way.
    ///
    /// Only the first answer is used.
    static func answer<Answer: Sendable>(
        _ method: DelegateMethod, _ receiver: any AnyObject & Sendable, otherwise fallback: Answer,
        completionForm: (@escaping @Sendable (Answer) -> Void) -> Void
    ) async -> Answer {
        await AnswerOnce<Answer>.wait { reply in
            if DelegateProbe.run(method, on: receiver, { completionForm { reply($0) } }) != nil { reply(nil) }
        } ?? fallback
    }
}

/// A body stream on its way from a delegate to the engine.
///
/// Sendable because ownership is transferred: the sender no longer uses the stream.
package struct BodyStreamAnswer: @unchecked Sendable {
    package var stream: InputStream?
    package init(_ stream: InputStream?) { self.stream = stream }
}
