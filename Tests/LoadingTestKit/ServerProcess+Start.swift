// SPDX-License-Identifier: Apache-2.0

import Foundation

#if canImport(Glibc)
import Glibc
#endif

extension ServerProcess {
    package static func start(_ command: Command) throws -> ServerProcess {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, command.input?.path ?? "/dev/null", O_RDONLY, 0)
        var pipes: [(Pipe, take: @Sendable (Data) -> Void)] = []
        for (number, output) in [(1, command.output), (2, command.errors)] as [(Int32, Output?)] {
            switch output {
            case nil: posix_spawn_file_actions_adddup2(&actions, 1, number)
            case .nothing: posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_WRONLY, 0)
            case .file(let file):
                posix_spawn_file_actions_addopen(&actions, number, file.path, O_WRONLY | O_CREAT | O_APPEND, 0o644)
            case .pipe(let take):
                let pipe = Pipe()
                posix_spawn_file_actions_adddup2(&actions, pipe.fileHandleForWriting.fileDescriptor, number)
                pipes.append((pipe, take))
            }
        }
        // The duplicates have higher numbers than those that the child gets.
        let high = command.sockets.map { fcntl($0, F_DUPFD_CLOEXEC, 64) }
        defer { for descriptor in high { close(descriptor) } }
        for (index, descriptor) in high.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(3 + index))
        }
        // glibc has a file action for the working directory, but Swift does not import it.
        let arguments = (command.directory.map { ["/usr/bin/env", "--chdir=\($0.path)"] } ?? []) + command.arguments
        let argv: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        let environment: [UnsafeMutablePointer<CChar>?] = command.variables.map { strdup("\($0)=\($1)") } + [nil]
        defer { for pointer in argv + environment { free(pointer) } }
        // Threads of Swift's task pool have blocked signals, which the child would inherit.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var process: pid_t = 0
        let result = posix_spawn(&process, arguments[0], &actions, &attributes, argv, environment)
        guard result == 0 else { throw Failure(description: "starting \(arguments[0]): errno \(result)") }
        for (pipe, take) in pipes {
            try pipe.fileHandleForWriting.close()
            gather(pipe.fileHandleForReading, take)
        }
        return ServerProcess(process)
    }

    private static func gather(_ handle: FileHandle, _ take: @escaping @Sendable (Data) -> Void) {
        Thread.detachNewThread {
            while true {
                let data = handle.availableData
                if data.isEmpty { break }
                take(data)
            }
            // The end of this thread does not close the handle.
            try? handle.close()
            take(Data())
        }
    }
}

extension ServerProcess.Command {
    fileprivate var variables: [String: String] {
        var home = directory ?? URL(fileURLWithPath: "/")
        if case .file(let file) = output { home = file.deletingLastPathComponent() }
        return [
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": home.path,
        ].merging(environment) { $1 }
    }
}
