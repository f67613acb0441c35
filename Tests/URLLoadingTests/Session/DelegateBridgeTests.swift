// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPWire
import LoadingModel
import Synchronization
import Testing
import URLLoading

@Suite struct DelegateBridgeTests {
    @Test func `a data task calls its delegate in the documented order, ending with didComplete`() async {
        let recorder = Recorder()
        let (session, service) = makeSession(recorder) { load in
            load.tell(.informational(ResponseHead(status: 103), url: load.url))
            let answer = await load.ask(.response(load.response(length: 6)))
            guard case .disposition(.allow) = answer else { return load.fail(LoadError(.unknown, "not allowed")) }
            load.tell(.data(Data("abc".utf8)))
            load.tell(.data(Data("def".utf8)))
            load.finish()
        }
        let task = session.dataTask(with: someURL)
        #expect(recorder.journal.lines == ["created"])
        #expect(task.state == .suspended)
        task.resume()
        await recorder.journal.wait(for: "complete")
        #expect(
            recorder.journal.lines == [
                "created", "informational 103", "response 200", "data abc state 0", "data def state 0", "metrics 1",
                "complete ok state 3",
            ]
        )
        #expect(task.countOfBytesReceived == 6)
        #expect(task.countOfBytesExpectedToReceive == 6)
        #expect(service.state.withLock { $0.loads[task.taskIdentifier]?.consumed } == 6)
    }

    @Test func `upload progress is coalesced, and reported after the counter has changed`() async {
        let recorder = Recorder()
        let (session, _) = makeSession(recorder) { load in
            load.tell(.sent(bytes: 2, total: 2, expected: 4))
            load.tell(.sent(bytes: 2, total: 4, expected: 4))
            _ = await load.ask(.response(load.response()))
            load.finish()
        }
        var request = URLRequest(url: someURL)
        request.httpMethod = "PUT"
        session.uploadTask(with: request, from: Data("abcd".utf8)).resume()
        await recorder.journal.wait(for: "complete")
        #expect(recorder.journal.lines.filter { $0.hasPrefix("sent") }.last == "sent 4/4 count 4")
        #expect(recorder.journal.lines.last == "complete ok state 3")
    }

    @Test func `a downloaded file exists during didFinishDownloading, and is removed before didComplete`() async {
        let recorder = Recorder()
        let path = temporaryFile("content")
        let (session, _) = makeSession(recorder) { load in
            load.tell(.response(load.response(length: 7)))
            load.tell(.resumed(offset: 3, expected: 7))
            load.tell(.wrote(bytes: 4, total: 7, expected: 7))
            load.finish(.file(path: path))
        }
        session.downloadTask(with: someURL).resume()
        await recorder.journal.wait(for: "complete")
        #expect(
            recorder.journal.lines == [
                "created", "resumed 3/7", "wrote 7/7", "file content", "metrics 1", "complete ok state 3",
            ]
        )
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `a data task that becomes a download sends no more events, and the download keeps its identifier`() async {
        let recorder = Recorder(.becomeDownload)
        let path = temporaryFile("content")
        let (session, _) = makeSession(recorder) { load in
            guard case .disposition(.becomeDownload) = await load.ask(.response(load.response(length: 7))) else {
                return load.fail(LoadError(.unknown, "no"))
            }
            load.tell(.becameDownload)
            load.tell(.wrote(bytes: 7, total: 7, expected: 7))
            load.finish(.file(path: path))
        }
        let task = session.dataTask(with: someURL)
        task.resume()
        await recorder.journal.wait(for: "complete")
        #expect(
            recorder.journal.lines == [
                "created", "response 200", "became true", "wrote 7/7", "file content", "metrics 1", "complete ok state 3",
            ]
        )
        #expect(task.state == .completed)
        #expect(await session.allTasks.isEmpty)
    }

    @Test func `each part of a mixed-replace body is a separate response, and its data waits for the disposition`() async {
        let recorder = Recorder()
        let (session, service) = makeSession(recorder) { load in
            _ = await load.ask(.response(load.response(200, [("Content-Type", "multipart/x-mixed-replace; boundary=b")])))
            load.tell(.data(Data("--b\r\nContent-Type: text/plain\r\n\r\none\r\n--b\r\n".utf8)))
            load.tell(.data(Data("Content-Type: text/html\r\n\r\ntwo\r\n--b--\r\n".utf8)))
            load.finish()
        }
        let task = session.dataTask(with: someURL)
        task.resume()
        await recorder.journal.wait(for: "complete")
        #expect(
            recorder.journal.lines == [
                "created", "response 200", "data one state 0", "response 200", "data two state 0", "metrics 1",
                "complete ok state 3",
            ]
        )
        #expect(task.response?.mimeType == "text/html")
        #expect(service.state.withLock { $0.loads[task.taskIdentifier]?.consumed } == 82)
    }

    @Test func `nil from the delegate refuses a redirect`() async {
        let recorder = Recorder()
        let (session, _) = makeSession(recorder) { load in
            #expect(load.order.interests.contains(.redirects))
            let next = LoadRequest(url: URL(string: "http://example.test/next"))
            guard case .request(nil) = await load.ask(.redirect(response: load.response(302), proposed: next)) else {
                return load.fail(LoadError(.unknown, "followed"))
            }
            _ = await load.ask(.response(load.response(302)))
            load.finish()
        }
        session.dataTask(with: someURL).resume()
        await recorder.journal.wait(for: "complete")
        #expect(
            recorder.journal.lines == [
                "created", "redirect 302 http://example.test/next", "response 302", "metrics 1", "complete ok state 3",
            ]
        )
    }

    @Test func `a method that the delegate lacks has the documented default`() async {
        let script: @Sendable (ScriptedLoad) async -> Void = { load in
            let next = LoadRequest(url: URL(string: "http://example.test/next"))
            guard case .request(let followed?) = await load.ask(.redirect(response: load.response(302), proposed: next)),
                followed.url == next.url,
                case .disposition(.allow) = await load.ask(.response(load.response())),
                case .bodyStream(nil) = await load.ask(.newBodyStream(from: 0)),
                case .delayed(.proceed) = await load.ask(.delayedRequest(next)),
                case .credential(.performDefaultHandling) = await load.ask(.challenge(someChallenge(load)))
            else { return load.fail(LoadError(.unknown, "unexpected answer")) }
            load.finish()
        }
        // In the second round, it is already cached which methods the class lacks.
        for _ in 0..<2 {
            let recorder = QuietRecorder()
            let (session, _) = makeSession(recorder, script: script)
            session.dataTask(with: someURL).resume()
            await recorder.journal.wait(for: "complete")
            #expect(recorder.journal.lines.last == "complete ok state 3")
        }
    }

    @Test func `the delegate's credential answers a challenge of the task`() async {
        let recorder = Recorder()
        let (session, _) = makeSession(recorder) { load in
            guard case .credential(.useCredential(let credential?)) = await load.ask(.challenge(someChallenge(load))),
                credential.user == "u", credential.password == "p"
            else {
                return load.fail(LoadError(.unknown, "no credential"))
            }
            load.finish()
        }
        session.dataTask(with: someURL).resume()
        await recorder.journal.wait(for: "complete")
        #expect(recorder.journal.lines == ["created", "challenge realm", "metrics 1", "complete ok state 3"])
    }

    @Test func `only the first of several answers of a delegate counts`() async {
        let recorder = Recorder(answers: 3)
        let (session, _) = makeSession(recorder) { load in
            _ = await load.ask(.response(load.response()))
            load.finish()
        }
        session.dataTask(with: someURL).resume()
        await recorder.journal.wait(for: "complete")
        #expect(recorder.journal.lines.last == "complete ok state 3")
    }

    @Test func `async delegate methods are found and awaited`() async {
        final class Answers: NSObject, URLSessionDataDelegate, Sendable {
            let journal = Journal()
            func urlSession(
                _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
            ) async -> URLSession.ResponseDisposition {
                journal.note("response")
                return .allow
            }
            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                journal.note("complete \(error == nil)")
            }
        }
        let delegate = Answers()
        let (session, _) = makeSession(delegate) { load in
            guard case .disposition(.allow) = await load.ask(.response(load.response())) else {
                return load.fail(LoadError(.unknown, "no"))
            }
            load.finish()
        }
        session.dataTask(with: someURL).resume()
        await delegate.journal.wait(for: "complete")
        #expect(delegate.journal.lines == ["response", "complete true"])
    }

    @Test func `the task's delegate comes first, and methods that it lacks go to the session's delegate`() async {
        final class OnlyRedirects: NSObject, URLSessionTaskDelegate, Sendable {
            let journal = Journal()
            func urlSession(
                _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
                newRequest request: URLRequest
            ) async -> URLRequest? {
                journal.note("redirect")
                return request
            }
        }
        let shared = Recorder()
        let own = OnlyRedirects()
        let (session, _) = makeSession(shared) { load in
            let next = LoadRequest(url: URL(string: "http://example.test/next"))
            guard case .request(_?) = await load.ask(.redirect(response: load.response(302), proposed: next)) else {
                return load.fail(LoadError(.unknown, "refused"))
            }
            _ = await load.ask(.response(load.response()))
            load.finish()
        }
        let task = session.dataTask(with: someURL)
        task.delegate = own
        #expect(task.delegate === own)
        task.resume()
        await shared.journal.wait(for: "complete")
        #expect(own.journal.lines == ["redirect"])
        #expect(shared.journal.lines == ["created", "response 200", "metrics 1", "complete ok state 3"])
        #expect(task.delegate == nil)
    }

    @Test func `after cancel only the completion is reported`() async {
        let recorder = Recorder()
        let (session, _) = makeSession(recorder) { load in
            _ = await load.ask(.response(load.response()))
            load.tell(.data(Data("abc".utf8)))
            await load.endWhenCancelled()
        }
        let task = session.dataTask(with: someURL)
        task.resume()
        await recorder.journal.wait(for: "data")
        task.cancel()
        #expect(task.state == .canceling || task.state == .completed)
        await recorder.journal.wait(for: "complete")
        #expect(recorder.journal.lines.last == "complete -999 state 3")
        #expect((task.error as? URLError)?.code == .cancelled)
    }

    @Test func `didBecomeInvalid is the last message`() async {
        let recorder = Recorder()
        let (session, service) = makeSession(recorder) { load in
            _ = await load.ask(.response(load.response()))
            await load.endWhenCancelled()
        }
        let running = session.dataTask(with: someURL)
        let unstarted = session.dataTask(with: someURL)
        running.resume()
        await recorder.journal.wait(for: "response")
        session.invalidateAndCancel()
        await recorder.journal.wait(for: "invalid")
        let lines = recorder.journal.lines
        #expect(lines.last == "invalid")
        #expect(lines.filter { $0 == "complete -999 state 3" }.count == 2)
        #expect(unstarted.state == .completed)
        #expect(service.state.withLock { $0.invalidations } == 1)
        await session.delegateQueue.idle()
        #expect(session.delegate == nil)
    }
}

func someChallenge(_ load: ScriptedLoad) -> ChallengeQuestion {
    var question = ChallengeQuestion(
        ProtectionSpace(host: "example.test", port: 80, kind: "http", realm: "realm", method: .basic)
    )
    question.response = load.response(401)
    return question
}

extension OperationQueue {
    /// Waits until all operations added before have run; the queue must be serial.
    func idle() async {
        await withCheckedContinuation { continuation in addOperation { continuation.resume() } }
    }
}
