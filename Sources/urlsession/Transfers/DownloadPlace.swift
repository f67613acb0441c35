//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import URLLoading

/// Where a download lives: beside its destination until it is complete, then under its name in one step.
///
/// `NAME.part` is a folder that holds what has arrived; `NAME.resume` is what a later run needs to go on.
struct DownloadPlace: Sendable {
    /// As given with `--output`, or the URL's last path component: it can be found again without asking the server.
    let path: String
    /// Whether the server may suggest another name.
    let takesSuggestion: Bool

    /// The folder in which a name that the server suggests is put.
    private let folder: String

    init(output: String?, url: URL, _ place: PlaceOptions? = nil) throws(ToolFailure) {
        takesSuggestion = output == nil
        let name = output ?? Self.safe(url.lastPathComponent) ?? "download"
        path = try place?.path(name) ?? name
        // By scalars: a mark that a name begins with is one character with the slash before it.
        folder = String(path.unicodeScalars.dropLast(name.unicodeScalars.count))
        isUnnamed = output == nil && name == "download"
    }

    /// Whether neither the user nor the URL says a name.
    private let isUnnamed: Bool

    var partFolder: String { path + ".part" }
    var resumeFile: String { path + ".resume" }

    /// Loads keep what arrives in `TMPDIR`; on the destination's own file system the last step is a rename.
    ///
    /// Called before the session is made.
    func prepare() throws(ToolFailure) {
        guard mkdir(partFolder, 0o777) == 0 || errno == EEXIST else {
            throw ToolFailure(23, "cannot create \(partFolder): \(String(cString: strerror(errno)))")
        }
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: partFolder, isDirectory: &isFolder), isFolder.boolValue else {
            throw ToolFailure(23, "cannot create \(partFolder): it is there, and no folder")
        }
        setenv("TMPDIR", URL(fileURLWithPath: partFolder).path, 1)
    }

    /// Puts the complete file in its place and answers with the path.
    ///
    /// What was there under the same name is replaced, as curl does it; a name that the server alone chose replaces nothing.
    func take(_ location: URL, _ response: URLResponse?) throws -> String {
        var target = path
        if takesSuggestion, isUnnamed || Self.isNamed(response),
            let name = response?.suggestedFilename.flatMap(Self.safe).map({ folder + $0 }), name != path
        {
            target = name
        }
        // Temporary files are for their owner alone; the finished one is as any other that the user makes.
        let mask = umask(0)
        umask(mask)
        chmod(location.path, 0o666 & ~mask)
        var problem = move(location.path, to: target)
        if problem == 0 { return target }
        guard problem == EXDEV else { throw refusal(target, problem) }
        let copy = partFolder + "/complete"
        try? FileManager.default.removeItem(atPath: copy)
        try FileManager.default.copyItem(atPath: location.path, toPath: copy)
        problem = move(copy, to: target)
        guard problem == 0 else { throw refusal(target, problem) }
        return target
    }

    /// In one step: what another program made in the meantime under a name that the server chose stays.
    ///
    /// - Returns: 0, or the system's number for what went wrong.
    private func move(_ file: String, to target: String) -> Int32 {
        guard target != path else { return rename(file, target) == 0 ? 0 : errno }
        if link(file, target) == 0 {
            unlink(file)
            return 0
        }
        // File systems without links: the name is taken by an empty file first.
        guard [EPERM, EOPNOTSUPP, EMLINK, ENOSYS].contains(errno) else { return errno }
        let descriptor = open(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return errno }
        close(descriptor)
        guard rename(file, target) != 0 else { return 0 }
        let problem = errno
        unlink(target)
        return problem
    }

    private func refusal(_ target: String, _ problem: Int32) -> ToolFailure {
        guard target != path, problem == EEXIST else {
            return ToolFailure(23, "cannot write \(target): \(String(cString: strerror(problem)))")
        }
        return ToolFailure(23, "the server calls it \(target), which is there already: choose with --output")
    }

    /// What an earlier run left, if it did; where it was killed, it says how much there is.
    func resumeData() -> Data? {
        guard let data = try? Data(contentsOf: URL(fileURLWithPath: resumeFile)) else { return nil }
        return URLSessionDownloadTask.resumeData(data, forWhatIsIn: URL(fileURLWithPath: partFolder)) ?? data
    }

    /// What the command line said is left out: its header fields may be secret, and the next run says them again.
    func keep(_ resumeData: Data) throws(ToolFailure) {
        // Nothing is better than an empty file: that would promise what no later run can do.
        guard let resumeData = URLSessionDownloadTask.resumeDataWithoutHeaderFields(resumeData) else {
            removeRemains()
            throw ToolFailure(23, "what arrived cannot be kept to go on with: the session's resume data makes no sense")
        }
        // Nobody else may read it at any time: not even between its making and the next call.
        let new = "\(resumeFile).\(getpid())"
        unlink(new)
        let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw ToolFailure(23, "cannot write \(resumeFile): \(String(cString: strerror(errno)))") }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try file.write(contentsOf: resumeData)
            try file.close()
        } catch {
            unlink(new)
            throw ToolFailure(23, "cannot write \(resumeFile): \(ToolFailure.reason(error))")
        }
        guard rename(new, resumeFile) == 0 else {
            let reason = String(cString: strerror(errno))
            unlink(new)
            throw ToolFailure(23, "cannot write \(resumeFile): \(reason)")
        }
    }

    /// Only what is ours: other programs call their files so, too.
    func removeRemains() {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: partFolder)) ?? [] {
            guard name == "complete" || name.hasPrefix("CFNetworkDownload_") else { continue }
            unlink(partFolder + "/" + name)
        }
        rmdir(partFolder)
        unlink(resumeFile)
    }

    /// The name that the server gives a file in so many words, where it is a harmless one.
    static func suggestion(_ response: URLResponse?) -> String? {
        isNamed(response) ? response?.suggestedFilename.flatMap(safe) : nil
    }

    private static func isNamed(_ response: URLResponse?) -> Bool {
        (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Disposition") != nil
    }

    /// The last path component of a URL as the user wrote it, for `--remote-name`.
    static func name(of address: String) throws(ToolFailure) -> String {
        let path = address[(RequestOptions.schemeEnd(address) ?? address.startIndex)...].prefix { !"?#".contains($0) }
        guard let slash = path.lastIndex(of: "/"), let name = safe(String(path[path.index(after: slash)...])) else {
            throw ToolFailure(23, "the URL names no file: choose a name with --output")
        }
        return name
    }

    /// One path component that hides nothing and leads nowhere else.
    private static func safe(_ name: String) -> String? {
        // By scalars: a dot or a slash with a combining mark is neither, as a character.
        let scalars = name.unicodeScalars
        guard let first = scalars.first, first != ".",
            !scalars.contains(where: { $0 == "/" || $0.properties.generalCategory == .control })
        else { return nil }
        return name
    }
}
