// SPDX-License-Identifier: Apache-2.0

import BackgroundClient
import Testing

/// What the properties of the daemon's unit say about its start.
@Suite struct ServiceUnitTests {
    private struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let properties: String
        /// The message up to its advice; nil if the daemon may still start.
        let message: String?
        var isFinal = false
    }

    private static let gone = "ExecStart={ path=/nonexistent/a b/urlsessiond ; argv[]=/nonexistent/a b/urlsessiond ; pid=0 }"

    private static let cases = [
        Case(
            testDescription: "the program is gone",
            properties: "Result=exit-code\nExecMainStatus=203\n\(gone)\nActiveState=failed\nSubState=failed",
            message: "urlsessiond.service failed (203/EXEC: /nonexistent/a b/urlsessiond: No such file or directory); ",
            isFinal: true),
        Case(
            testDescription: "the program is gone, and its older unit is restarted for ever",
            properties: "Result=exit-code\nExecMainStatus=203\n\(gone)\nActiveState=activating\nSubState=auto-restart",
            message: "urlsessiond.service failed (203/EXEC: /nonexistent/a b/urlsessiond: No such file or directory); ",
            isFinal: true),
        Case(
            testDescription: "a file that cannot be executed for another reason",
            properties: "Result=exit-code\nExecMainStatus=203\nExecStart={ path=/bin/sh ; }\nActiveState=failed",
            message: "urlsessiond.service failed (203/EXEC: /bin/sh: cannot be executed); ", isFinal: true),
        Case(
            testDescription: "no command",
            properties: "Result=exit-code\nExecMainStatus=203\nExecStart={ path=/bin/sh\nActiveState=failed",
            message: "urlsessiond.service failed (203/EXEC: ", isFinal: true),
        Case(
            testDescription: "a missing library",
            properties: "Result=exit-code\nExecMainStatus=127\nActiveState=failed",
            message: "urlsessiond.service failed (status 127); see: journalctl --user -u urlsessiond.service", isFinal: true),
        Case(
            testDescription: "a daemon that keeps ending",
            properties: "Result=exit-code\nExecMainStatus=1\nActiveState=activating\nSubState=auto-restart-queued",
            message: "urlsessiond.service failed (status 1); "),
        Case(
            testDescription: "a daemon that is killed",
            properties: "Result=core-dump\nExecMainStatus=11\nActiveState=activating\nSubState=auto-restart",
            message: "urlsessiond.service failed (signal 11); "),
        Case(
            testDescription: "a manager without resources", properties: "Result=resources\nExecMainStatus=0\nActiveState=failed",
            message: "urlsessiond.service failed (resources); "),
        Case(
            testDescription: "a starting daemon",
            properties: "Result=success\nExecMainStatus=0\nActiveState=active\nSubState=running", message: nil),
        Case(
            testDescription: "a daemon that starts after a failure",
            properties: "Result=exit-code\nExecMainStatus=203\nActiveState=activating\nSubState=start", message: nil),
        Case(
            testDescription: "an idle daemon that has ended", properties: "Result=success\nActiveState=inactive\nSubState=dead",
            message: nil),
        Case(testDescription: "nothing", properties: "", message: nil),
        Case(testDescription: "no properties", properties: "=\n==\nActiveState\n\n{", message: nil),
    ]

    @Test(arguments: cases)
    private func `a unit that failed is told from one that may still start`(_ example: Case) {
        let properties = "StateChangeTimestampMonotonic=2000000\n" + example.properties + "\n"
        let failure = ServiceUnit.Failure(properties: properties, since: 2)
        #expect((failure == nil) == (example.message == nil), "\(String(describing: failure))")
        if let failure, let message = example.message {
            #expect(failure.message.hasPrefix(message), "\(failure.message)")
            #expect(failure.isFinal == example.isFinal)
        }
        // Failures before the connection was opened are of no interest: systemd starts the service for it again.
        #expect(ServiceUnit.Failure(properties: properties, since: 2.1) == nil)
        #expect(ServiceUnit.Failure(properties: example.properties, since: 2) == nil)
    }
}
