// swift-tools-version:6.2

import PackageDescription

let package = Package(
    name: "BackgroundDownload",
    dependencies: [
        // In your own package: .package(url: …) or the path of your clone.
        .package(name: "swift-url-loading", path: "../..")
    ],
    targets: [
        .executableTarget(
            name: "BackgroundDownload",
            dependencies: [
                .product(name: "URLLoading", package: "swift-url-loading"),
                // The daemon is built beside the program, which finds it there.
                .product(name: "urlsessiond", package: "swift-url-loading"),
            ])
    ]
)
