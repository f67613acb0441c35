// swift-tools-version:6.2

import PackageDescription

let package = Package(
    name: "Pinning",
    dependencies: [
        // In your own package: .package(url: …) or the path of your clone.
        .package(name: "swift-url-loading", path: "../..")
    ],
    targets: [
        .executableTarget(name: "Pinning", dependencies: [.product(name: "URLLoading", package: "swift-url-loading")])
    ]
)
