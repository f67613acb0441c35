// SPDX-License-Identifier: Apache-2.0

import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A delegate as in a program for Linux and Apple's platforms.
final class Collector: NSObject, URLSessionDataDelegate {
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        print(String(decoding: data, as: UTF8.self))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        print(error.map { "failed: \($0)" } ?? "done")
        session.finishTasksAndInvalidate()
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { exit(0) }
}

let url = CommandLine.arguments.dropFirst().first.flatMap { URL(string: $0) } ?? URL(fileURLWithPath: "/")
print(String(reflecting: URLSession.self))
print(NSData(contentsOf: url)?.length ?? -1)
URLSession(configuration: .default, delegate: Collector(), delegateQueue: nil).dataTask(with: url).resume()
dispatchMain()
