//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CSystemLibraries
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A script in a world of its own, by the system's JavaScriptCore (WebKitGTK).
///
/// Every call blocks while the script runs, for ``limit`` of processor time at most, and while it asks ``Helper``. Never to be called on an
/// event loop. Calls may come from any thread; they take turns.
package final class JavaScript: Sendable {
    /// Goes from thread to thread; the C side never changes it once it is made.
    ///
    /// Sendable because nothing changes what it points to, and nothing frees it.
    struct Library: @unchecked Sendable {
        let functions: OpaquePointer
    }

    static let library: Library? = {
        let names = ["libjavascriptcoregtk-4.1.so.0", "libjavascriptcoregtk-6.0.so.1", "libjavascriptcoregtk-4.0.so.18"]
        guard let opened = SystemLibrary.open(names) else { return nil }
        var missing: UnsafePointer<CChar>?
        guard let functions = csl_js_load(opened.handle, &missing) else {
            opened.reject(missing: missing.map { String(cString: $0) } ?? "")
            return nil
        }
        return Library(functions: functions)
    }()

    /// Seconds of processor time after which a script is ended.
    package static let limit = 3.0

    package struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        package var text: String
        package var description: String { text }
    }

    /// Answers what the script asks by `__ask(what, name)`, on the thread that runs it; nil is null.
    package typealias Helper = @Sendable (_ what: String, _ name: String) -> String?

    private final class Questions: Sendable {
        let answer: Helper
        init(_ answer: @escaping Helper) { self.answer = answer }
    }

    private struct State {
        var context: OpaquePointer?
    }

    private let state: Mutex<State>
    /// The context has a pointer to it.
    private let questions: Questions

    /// Makes a world with the helpers' own script in it, and then the script.
    ///
    /// - Parameters:
    ///   - scripts: Are run in their order.
    ///   - helper: Answers their questions.
    /// - Throws: Where there is no JavaScriptCore, or a script fails.
    package init(_ scripts: [String], helper: @escaping Helper) throws(Failure) {
        questions = Questions(helper)
        guard let library = Self.library else {
            throw Failure(text: "JavaScriptCore is not installed (libjavascriptcoregtk-4.1)")
        }
        let context = csl_js_create(
            library.functions, Self.limit,
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
                var result = csl_js_result()
                guard let context = state.context, csl_js_run(context, script, &result) == 0 else { return nil }
                return Failure(text: Self.text(&result))
            }
            if let failure { throw failure }
        }
    }

    deinit { state.withLock { csl_js_free($0.context) } }

    /// Calls the first of these functions that the script has.
    ///
    /// - Returns: What it returned; nil is null.
    package func call(_ names: [String], _ first: String, _ second: String) -> Result<String?, Failure> {
        state.withLock { state -> Result<String?, Failure> in
            var result = csl_js_result()
            guard let context = state.context else { return .failure(Failure(text: "there is no memory for it")) }
            let copies = names.map { strdup($0) }
            defer { for copy in copies { free(copy) } }
            let isGood = csl_js_call(context, copies.map { UnsafePointer($0) } + [nil], first, second, &result)
            guard isGood != 0 else { return .failure(Failure(text: Self.text(&result))) }
            defer { free(result.text) }
            return .success(result.text.map { String(cString: $0) })
        }
    }

    private static func text(_ result: inout csl_js_result) -> String {
        withUnsafeBytes(of: &result.failure) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}
