# Shared by Scripts/api, Scripts/docs and Scripts/snippets: builds the module URLLoading and extracts its symbol graphs.

import glob
import json
import os
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


# The traits of `make test`, so that the API of each trait is checked as well.
TRAITS = ["--traits", output("Scripts/traits").strip()]


def module_options():
    """Builds URLLoading, and returns the compiler options for importing it."""
    subprocess.run(["swift", "build", *TRAITS, "--target", "URLLoading"], check=True, stdout=sys.stderr)
    products = output("swift", "build", *TRAITS, "--show-bin-path").strip()
    # Importing a Swift module needs the C modules that it and its dependencies import.
    folders = [os.path.join(products, "Modules")] + [
        entry.path for entry in os.scandir(products) if os.path.exists(os.path.join(entry.path, "module.modulemap"))]
    # Some packages include module maps; the build generates the others.
    generated = {os.path.basename(path).removesuffix(".build") for path in folders}
    folders += [
        os.path.dirname(path) for path in glob.glob(".build/checkouts/*/Sources/*/include/module.modulemap")
        if path.split("/")[-3] not in generated]
    # Module maps of system libraries.
    folders += [os.path.dirname(path) for path in glob.glob("Sources/*/module.modulemap")]
    return [word for path in sorted(folders) for word in ("-I", path)]


def extract(folder, *options):
    """Writes the symbol graphs of public declarations to a folder: one for the module, and one for each module it extends."""
    triple = json.loads(output("swift", "-print-target-info"))["target"]["unversionedTriple"]
    subprocess.run(
        ["swift-symbolgraph-extract", "-module-name", "URLLoading", "-minimum-access-level", "public", "-target", triple,
         "-output-dir", folder, *options, *module_options()], check=True)


def graphs(folder):
    """The symbol graphs in a folder."""
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            yield json.load(file)
