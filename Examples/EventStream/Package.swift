// swift-tools-version:6.2

import PackageDescription

let package = Package(
    name: "EventStream",
    dependencies: [
        // In your own package: .package(url: …) or the path of your clone.
        .package(name: "swift-url-loading", path: "../..")
    ],
    targets: [
        .executableTarget(name: "EventStream", dependencies: [.product(name: "URLLoading", package: "swift-url-loading")])
    ]
)
