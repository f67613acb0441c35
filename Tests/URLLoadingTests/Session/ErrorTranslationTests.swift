// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingModel
import Testing
import URLLoading

@Suite struct ErrorTranslationTests {
    @Test(arguments: LoadError.Kind.allCases)
    func `every kind of LoadError becomes a URLError, and the app's own errors are passed through`(
        kind: LoadError.Kind
    ) async {
        struct CustomError: Error {}
        let (session, _) = makeSession { load in load.fail(LoadError(kind, "text", cause: CustomError())) }
        do {
            _ = try await session.data(from: someURL)
            Issue.record("no error")
        } catch is CustomError {
            #expect(kind == .application)
        } catch let error as URLError {
            #expect(kind != .application)
            #expect(kind == .unknown || error.code != .unknown)
            #expect(error.failingURL == someURL)
        } catch {
            Issue.record("\(error)")
        }
    }
}
