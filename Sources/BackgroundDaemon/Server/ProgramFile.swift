// SPDX-License-Identifier: Apache-2.0

import LibC

/// The executable files of programs, by which the daemon knows them.
enum ProgramFile {
    /// Returns the executable of a process; if the executable was replaced meanwhile, its former path.
    static func of(_ process: Int32) -> String? {
        guard let path = target(of: "/proc/\(process)/exe"), !path.isEmpty else { return nil }
        let mark = " (deleted)"
        return path.hasSuffix(mark) ? String(path.dropLast(mark.count)) : path
    }

    /// Whether a program is the user's own tool to manage the transfers of all programs.
    static func mayManage(_ program: String) -> Bool {
        managerFolders.contains { program == $0 + "/urlsession" || program == $0 + "/urlsessiond" }
    }

    /// The folders that may contain the user's tool: the daemon's folder, `PREFIX/bin` for a daemon in `PREFIX/libexec`, and the
    /// folders where administrators install programs.
    ///
    /// Even if the daemon was installed with another program, the user's tool in these folders may manage it.
    private static let managerFolders: [String] = {
        guard let own = target(of: "/proc/self/exe") else { return [] }
        let folder = own.split(separator: "/", omittingEmptySubsequences: false).dropLast()
        let folders = [folder.joined(separator: "/"), (folder.dropLast() + ["bin"]).joined(separator: "/")]
        return folders + ["/usr/local/bin", "/usr/bin"].filter { !folders.contains($0) }
    }()

    /// Returns the error message for a program that is not one of the user's tools.
    static func managerRefusal(of program: String) -> String {
        "\(program) may not manage the transfers of all programs: the running urlsessiond permits that only to urlsession in "
            + managerFolders.joined(separator: ", ") + "; to replace it, start another one with urlsessiond --replace"
    }

    private static func target(of link: String) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
            guard let start = buffer.baseAddress else { return nil }
            let count = readlink(link, start, buffer.count)
            guard count > 0, count < buffer.count else { return nil }
            return String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
        }
    }
}
