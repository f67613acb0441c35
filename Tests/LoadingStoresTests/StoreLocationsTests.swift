// SPDX-License-Identifier: Apache-2.0

import LoadingStores
import Testing

@Suite struct StoreLocationsTests {
    @Test(arguments: [
        ("the variable counts", ["XDG_DATA_HOME": "/data", "HOME": "/home/u"], "/data/urlloading/app"),
        ("slashes at its end do not", ["XDG_DATA_HOME": "/data//", "HOME": "/home/u"], "/data/urlloading/app"),
        ("without it, the home does", ["HOME": "/home/u"], "/home/u/.local/share/urlloading/app"),
        ("a relative path is ignored", ["XDG_DATA_HOME": "data", "HOME": "/home/u"], "/home/u/.local/share/urlloading/app"),
        ("an empty one is as if not set", ["XDG_DATA_HOME": "", "HOME": "/home/u"], "/home/u/.local/share/urlloading/app"),
        ("the root may be a home", ["HOME": "/"], "/.local/share/urlloading/app"),
    ])
    func `data is stored where the XDG specification defines`(what: String, environment: [String: String], path: String) {
        #expect(StoreLocations.dataDirectory(program: "app", environment: environment) == path, "\(what)")
    }

    @Test func `caches have their own folder`() {
        let environment = ["XDG_DATA_HOME": "/data", "HOME": "/home/u"]
        #expect(StoreLocations.cacheDirectory(program: "app", environment: environment) == "/home/u/.cache/urlloading/app")
        let set = ["XDG_CACHE_HOME": "/cache", "HOME": "/home/u"]
        #expect(StoreLocations.cacheDirectory(program: "app", environment: set) == "/cache/urlloading/app")
    }

    @Test func `without HOME, the user's home folder is used`() throws {
        let path = try #require(StoreLocations.dataDirectory(program: "app", environment: [:]))
        #expect(path.hasPrefix("/") && path.hasSuffix("/.local/share/urlloading/app"))
        #expect(StoreLocations.dataDirectory(program: "app", environment: ["HOME": "relative"]) == path)
    }

    @Test func `a group's folder belongs to no single program`() {
        let environment = ["XDG_DATA_HOME": "/d"]
        #expect(StoreLocations.groupDirectory(identifier: "group.a", environment: environment) == "/d/urlloading/+groups/group.a")
        #expect(StoreLocations.component("+groups") == "%2bgroups")
    }

    @Test(arguments: [
        ("org.example.App-1_2", "org.example.App-1_2"),
        ("", "%"),
        (".", "%2e"),
        ("..", "%2e."),
        ("../../etc", "%2e.%2f..%2fetc"),
        (".hidden", "%2ehidden"),
        ("my app", "my%20app"),
        ("a\0b\n", "a%00b%0a"),
        ("ü", "%c3%bc"),
        ("100%", "100%25"),
    ])
    func `a program's name becomes one path component`(name: String, component: String) {
        #expect(StoreLocations.component(name) == component)
    }

    @Test func `long names are shortened and stay distinct`() {
        let one = StoreLocations.component(String(repeating: "a", count: 5_000) + "1")
        let other = StoreLocations.component(String(repeating: "a", count: 5_000) + "2")
        #expect(one.utf8.count <= 128 && one != other)
    }
}
