// SPDX-License-Identifier: Apache-2.0

import CSystemLibraries
import LibC
import Synchronization

/// A script in a separate JavaScript context, run by the system's JavaScriptCore (WebKitGTK).
///
/// Every call blocks while the script is running, for at most ``limit``, and while the ``Helper`` answers. Never make such a call
/// on an event loop. Calls may come from any thread; a lock serializes them.
package final class JavaScript: Sendable {
    static let library = SystemLibrary.functions(
        of: ["libjavascriptcoregtk-4.1.so.0", "libjavascriptcoregtk-6.0.so.1", "libjavascriptcoregtk-4.0.so.18"],
        clib_js_load)

    /// The processor time in seconds after which a script is terminated.
    package static let limit = 3.0

    package struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        package var text: String
        package var description: String { text }
    }

    /// Answers the script's calls of `__ask(what, name)`, on the thread that runs the script; nil becomes null.
    package typealias Helper = @Sendable (_ what: String, _ name: String) -> String?

    private final class Questions: Sendable {
        let answer: Helper
        init(_ answer: @escaping Helper) { self.answer = answer }
    }

    private struct State {
        var context: OpaquePointer?
    }

    private let state: Mutex<State>
    /// The context has an unretained pointer to this object.
    private let questions: Questions

    /// Creates a context and runs the scripts in it.
    ///
    /// - Parameters:
    ///   - scripts: The scripts, which are run in order.
    ///   - helper: Answers the scripts' calls of `__ask`.
    /// - Throws: ``Failure`` if JavaScriptCore is not installed, or a script fails.
    package init(_ scripts: [String], helper: @escaping Helper) throws(Failure) {
        questions = Questions(helper)
        guard let library = Self.library else {
            throw Failure(text: "JavaScriptCore is not installed (libjavascriptcoregtk-4.1)")
        }
        let context = clib_js_create(
            library.table, Self.limit,
            { data, what, name in
                guard let data, let what, let name else { return nil }
                let questions = Unmanaged<Questions>.fromOpaque(data).takeUnretainedValue()
                return questions.answer(String(cString: what), String(cString: name)).flatMap { strdup($0) }
            },
            Unmanaged.passUnretained(questions).toOpaque()
        )
        state = Mutex(State(context: context))
        for script in scripts {
            let failure = state.withLock { state -> Failure? in
                var result = clib_js_result()
                guard let context = state.context, clib_js_run(context, script, &result) == 0 else { return nil }
                return Failure(text: SystemLibrary.text(result.failure))
            }
            if let failure { throw failure }
        }
    }

    deinit { state.withLock { clib_js_free($0.context) } }

    /// Calls the first of these functions that the script defines.
    ///
    /// - Returns: The function's result; nil for null.
    package func call(_ names: [String], _ first: String, _ second: String) -> Result<String?, Failure> {
        state.withLock { state -> Result<String?, Failure> in
            var result = clib_js_result()
            guard let context = state.context else { return .failure(Failure(text: "out of memory")) }
            let copies = names.map { strdup($0) }
            defer { for copy in copies { free(copy) } }
            let isGood = clib_js_call(context, copies.map { UnsafePointer($0) } + [nil], first, second, &result)
            guard isGood != 0 else { return .failure(Failure(text: SystemLibrary.text(result.failure))) }
            defer { free(result.text) }
            return .success(result.text.map { String(cString: $0) })
        }
    }

}
