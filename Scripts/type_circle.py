# Used by Scripts/check: finds the largest circle of types in a module (docs/ARCHITECTURE.md, "Design rules").
#
# A file is tied to another if it names a type that only the other declares outside of other types. A file that declares no type belongs to
# the file of the type that it extends. In a circle, each file is tied to each other file, directly or through others of the circle.

import re

DECLARATION = re.compile(r"\b(?:class|struct|enum|protocol|actor|typealias)\s+([A-Z]\w*)")
EXTENSION = re.compile(r"\bextension\s+([A-Z]\w*)")
# Not a member of another type, such as `Part` in `Upload.Part`.
NAME = re.compile(r"(?<![.\w])[A-Z]\w*")


def declared_types(code):
    """The types that a file declares outside of other types."""
    names, depth = set(), 0
    for line in code.split("\n"):
        for match in DECLARATION.finditer(line):
            if depth + line.count("{", 0, match.start()) == line.count("}", 0, match.start()):
                names.add(match.group(1))
        depth += line.count("{") - line.count("}")
    return names


def largest(codes):
    """The paths of the largest circle; `codes` maps each path of a module to its code without comments and strings."""
    declared = {path: declared_types(code) for path, code in codes.items()}
    places = {}
    for path, names in declared.items():
        for name in names:
            places.setdefault(name, []).append(path)
    owner = {name: paths[0] for name, paths in places.items() if len(paths) == 1}
    node = {}
    for path, code in codes.items():
        extended = [name for name in EXTENSION.findall(code) if name in owner]
        node[path] = path if declared[path] or not extended else owner[extended[0]]
    ties = {path: set() for path in codes}
    for path, code in codes.items():
        ties[node[path]].update(node[owner[name]] for name in NAME.findall(code) if name in owner)

    def reached(start):
        found, left = set(), [start]
        while left:
            for path in ties[left.pop()] - found:
                found.add(path)
                left.append(path)
        return found

    reach = {path: reached(path) for path in ties}
    circles = ({other for other in reach[path] if path in reach[other]} for path in ties)
    return max(([path for path in codes if node[path] in circle] for circle in circles), key=len, default=[])
