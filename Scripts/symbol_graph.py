# What Scripts/api, Scripts/docs and Scripts/snippets share: the built module URLLoading, and its symbol graphs.

import glob
import json
import os
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


# What `make test` builds with: the API of a trait is documented and reviewed as all others.
TRAITS = ["--traits", output("Scripts/traits").strip()]


def module_options():
    """Builds URLLoading, and returns the compiler's options with which another module can import it."""
    subprocess.run(["swift", "build", *TRAITS, "--target", "URLLoading"], check=True, stdout=sys.stderr)
    products = output("swift", "build", *TRAITS, "--show-bin-path").strip()
    # A Swift module is read together with the C modules that its rooms import.
    folders = [os.path.join(products, "Modules")] + [
        entry.path for entry in os.scandir(products) if os.path.exists(os.path.join(entry.path, "module.modulemap"))]
    # Some packages bring the map of a C module along; the others' are made by the build.
    made = {os.path.basename(path).removesuffix(".build") for path in folders}
    folders += [
        os.path.dirname(path) for path in glob.glob(".build/checkouts/*/Sources/*/include/module.modulemap")
        if path.split("/")[-3] not in made]
    # The system's libraries.
    folders += [os.path.dirname(path) for path in glob.glob("Sources/*/module.modulemap")]
    return [word for path in sorted(folders) for word in ("-I", path)]


def extract(folder, *options):
    """Writes the symbol graphs of what is public into a folder: the module's own, and one for each module it extends."""
    triple = json.loads(output("swift", "-print-target-info"))["target"]["unversionedTriple"]
    subprocess.run(
        ["swift-symbolgraph-extract", "-module-name", "URLLoading", "-minimum-access-level", "public", "-target", triple,
         "-output-dir", folder, *options, *module_options()], check=True)


def graphs(folder):
    """The graphs that a folder has."""
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            yield json.load(file)
