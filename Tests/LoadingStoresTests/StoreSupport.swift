// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import LoadingStores

let start = 800_000_000.0

extension CookieStore {
    /// Creates a store that shares nothing but its file with other stores, like a store in another process.
    convenience init(apart path: String, pause: Double = 0, fault: FileStep.Fault? = nil) {
        self.init(file: SharedFile(path: path, fault: fault), queue: DiskQueue(), pause: pause)
    }

    func flush() async {
        await withCheckedContinuation { continuation in
            flush { continuation.resume() }
        }
    }

    func names(now: Double = start) -> [String] { all(now: now).map(\.name) }
}

extension HSTSStore {
    convenience init(apart path: String, fault: FileStep.Fault? = nil) {
        self.init(file: SharedFile(path: path, fault: fault), queue: DiskQueue(), pause: 0)
    }

    func flush() async {
        await withCheckedContinuation { continuation in
            flush { continuation.resume() }
        }
    }
}

func cookie(_ name: String, _ value: String = "v", domain: String = "example.com", lifetime: Double? = 86_400) -> Cookie {
    Cookie(name: name, value: value, domain: domain, expires: lifetime.map { start + $0 }, creation: start)
}
