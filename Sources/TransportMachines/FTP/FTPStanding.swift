// SPDX-License-Identifier: Apache-2.0

/// What client and server have agreed on over a control connection, from where the next load continues.
///
/// The password is never printed.
package struct FTPStanding: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    /// A change of the working directory.
    struct Step: Hashable, Sendable {
        var name: [UInt8]
        /// The directories in which it ends.
        var directories: [[UInt8]]
    }

    let security: FTPPlan.Security
    var user: [UInt8] = []
    var password: [UInt8] = []
    /// The working directory after the login; nil if it is unknown.
    var home: [UInt8]?
    /// The directories that the server has changed to since the login, in order.
    var directories: [[UInt8]] = []
    /// Whether the transfer type is text; nil if it was not set.
    var isText: Bool?
    /// The server does not support `EPSV`, or not in a way that works.
    var usesPASV = false

    init(security: FTPPlan.Security) { self.security = security }

    /// Whether a load with this plan and login can continue from here.
    package func serves(_ plan: FTPPlan, user: [UInt8], password: [UInt8]) -> Bool {
        plan.security == security && user == self.user && password == self.password && way(to: plan.directories) != nil
    }

    /// Returns the changes that lead to the directories; nil if there is no way from here.
    func way(to target: [[UInt8]]) -> [Step]? {
        if target.starts(with: directories) { return Self.steps(target.dropFirst(directories.count), from: directories) }
        if target.first.map(Self.isAbsolute) == true { return Self.steps(target[...], from: []) }
        return home.map { [Step(name: $0, directories: [])] + Self.steps(target[...], from: []) }
    }

    private static func steps(_ names: ArraySlice<[UInt8]>, from start: [[UInt8]]) -> [Step] {
        var directories = start
        return names.map { name in
            directories.append(name)
            return Step(name: name, directories: directories)
        }
    }

    /// Whether a directory's name leads to the same place from anywhere.
    static func isAbsolute(_ name: [UInt8]) -> Bool { name.first == UInt8(ascii: "/") }

    package var description: String { "(not shown)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
