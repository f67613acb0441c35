// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// The files of a download: a temporary file beside the destination holds the data until the download is complete, and is then
/// renamed to the destination.
///
/// `NAME.part` is a folder that holds the received data; `NAME.resume` is the resume data for a later run.
struct DownloadFiles: Sendable {
    /// The path given with `--output`, or the URL's last path component: both are known before the server responds.
    let path: String
    /// Whether the file takes another name if the server suggests one.
    let takesSuggestion: Bool

    /// The folder for a name that the server suggests.
    private let folder: String

    init(output: String?, url: URL, _ place: OutputFileOptions? = nil) throws(ToolFailure) {
        takesSuggestion = output == nil
        let name = output ?? Self.safe(FTPAddress.fileName(url)) ?? "download"
        path = try place?.path(name) ?? name
        // Counted in scalars: a combining mark at the start of a name forms one character with the slash before it.
        folder = String(path.unicodeScalars.dropLast(name.unicodeScalars.count))
        isUnnamed = output == nil && name == "download"
    }

    /// Whether neither the user nor the URL specifies a name.
    private let isUnnamed: Bool

    var partFolder: String { path + ".part" }
    var resumeFile: String { path + ".resume" }

    /// Creates the folder and sets `TMPDIR` to it, so that loads keep their data on the destination's file system, where the
    /// complete file only has to be renamed.
    ///
    /// Called before the session is created.
    func prepare() throws(ToolFailure) {
        guard mkdir(partFolder, 0o777) == 0 || errno == EEXIST else {
            throw ToolFailure.system(23, "cannot create \(partFolder)")
        }
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: partFolder, isDirectory: &isFolder), isFolder.boolValue else {
            throw ToolFailure(23, "cannot create \(partFolder): it exists, and is not a folder")
        }
        setenv("TMPDIR", URL(fileURLWithPath: partFolder).path, 1)
    }

    /// Moves the complete file to its place, and returns the path.
    ///
    /// An existing file of that name is replaced, as by curl, unless the server chose a name other than `path`.
    func take(_ location: URL, _ response: URLResponse?) throws -> String {
        var target = path
        if takesSuggestion, isUnnamed || Self.isNamed(response),
            let name = response?.suggestedFilename.flatMap(Self.safe).map({ folder + $0 }), name != path
        {
            target = name
        }
        // Temporary files are accessible only to their owner; the finished file gets the user's default permissions.
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

    /// Moves a file in one step, without replacing a file that another program has created under a name that the server chose.
    ///
    /// - Returns: 0, or the system's error number.
    private func move(_ file: String, to target: String) -> Int32 {
        guard target != path else { return rename(file, target) == 0 ? 0 : errno }
        if link(file, target) == 0 {
            unlink(file)
            return 0
        }
        // On file systems without hard links, an empty file reserves the name first.
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
            return ToolFailure.system(23, "cannot write \(target)", number: problem)
        }
        return ToolFailure(23, "the server suggests the name \(target), which already exists: choose one with --output")
    }

    /// Returns the resume data of an earlier run; if that run was killed, the length of the data that it received is added.
    func resumeData() -> Data? {
        guard let data = try? Data(contentsOf: URL(fileURLWithPath: resumeFile)) else { return nil }
        return URLSessionDownloadTask.resumeData(data, forWhatIsIn: URL(fileURLWithPath: partFolder)) ?? data
    }

    /// Keeps resume data without the header fields of the command line: they may be secret, and the next run specifies them again.
    func keep(_ resumeData: Data) throws(ToolFailure) {
        // An empty file would suggest that the download can be resumed.
        guard let resumeData = URLSessionDownloadTask.resumeDataWithoutHeaderFields(resumeData) else {
            removeRemains()
            throw ToolFailure(23, "the received data cannot be kept for --resume: the session's resume data is not valid")
        }
        // The file is created with mode 0600, so that other users cannot read it at any time.
        let new = "\(resumeFile).\(getpid())"
        unlink(new)
        let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw ToolFailure.system(23, "cannot write \(resumeFile)") }
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

    /// Removes only the files of this download, because other programs also use names such as `NAME.part`.
    func removeRemains() {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: partFolder)) ?? [] {
            guard name == "complete" || name.hasPrefix("CFNetworkDownload_") else { continue }
            unlink(partFolder + "/" + name)
        }
        rmdir(partFolder)
        unlink(resumeFile)
    }

    /// Returns the file name in the response's Content-Disposition, if it is safe.
    static func suggestion(_ response: URLResponse?) -> String? {
        isNamed(response) ? response?.suggestedFilename.flatMap(safe) : nil
    }

    private static func isNamed(_ response: URLResponse?) -> Bool {
        (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Disposition") != nil
    }

    /// Returns the last path component of the URL as the user wrote it, for `--remote-name`.
    static func name(of address: String) throws(ToolFailure) -> String {
        let path = address[(RequestOptions.schemeEnd(address) ?? address.startIndex)...].prefix { !"?#".contains($0) }
        guard let slash = path.lastIndex(of: "/"), let name = safe(String(path[path.index(after: slash)...])) else {
            throw ToolFailure(23, "the URL has no file name: choose one with --output")
        }
        return name
    }

    /// Returns the name if it is a single path component without control characters and does not begin with a dot.
    private static func safe(_ name: String) -> String? {
        // Checked by scalars: as a character, a dot or a slash with a combining mark would not match.
        let scalars = name.unicodeScalars
        guard let first = scalars.first, first != ".",
            !scalars.contains(where: { $0 == "/" || $0.properties.generalCategory == .control })
        else { return nil }
        return name
    }
}
