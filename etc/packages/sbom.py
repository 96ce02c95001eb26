#!/usr/bin/python3
"""sbom.py VERSION FILE...: an SPDX 2.3 document of what these files link, by Debian's packages of this machine.

Libraries that are loaded at run time (dlopen) are named below: no linker knows them.  The document is the same for the same
files and packages: its time is SOURCE_DATE_EPOCH, else that of the release.
"""
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOADED_LATER = ("libcurl.so.4", "libssl.so.3")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def libraries(files):
    """Paths of all that the loader would load for them."""
    cache = dict(re.findall(r"^\s(\S+) .* => (\S+)$", output("/sbin/ldconfig", "-p"), re.MULTILINE))
    later = [cache[name] for name in LOADED_LATER if name in cache]
    found = set(later)
    for file in [*files, *later]:
        found |= set(re.findall(r"(?:=> |^\s)(/\S+) \(0x", output("ldd", file), re.MULTILINE))
    ours = {str(pathlib.Path(file).resolve()) for file in files}
    return sorted(os.path.realpath(path) for path in found if os.path.realpath(path) not in ours)


def packages(paths):
    """The packages that these files came with: name, version, architecture, source."""
    # dpkg knows a file of a merged /usr by the name that it came with: with /usr or without.
    forms = {form: path for path in paths for form in (path, path.removeprefix("/usr"))}
    said = subprocess.run(["dpkg-query", "-S", *forms], capture_output=True, text=True).stdout
    owners = {forms[path]: name for name, path in re.findall(r"^(?!diversion)(\S+): (\S+)$", said, re.MULTILINE) if path in forms}
    if missing := set(paths) - set(owners):
        sys.exit(f"sbom.py: no package has {', '.join(sorted(missing))}")
    names = set(owners.values())
    fields = "${Package}\t${Version}\t${Architecture}\t${source:Package}\n"
    return sorted(tuple(line.split("\t")) for line in output("dpkg-query", "-W", "-f", fields, *sorted(names)).splitlines())


def release_time():
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(epoch)
    release = ROOT / ".release"
    if release.exists():
        return int(re.search(r"^epoch=(\d+)$", release.read_text(), re.MULTILINE)[1])
    return int(output("git", "-C", str(ROOT), "log", "-1", "--format=%ct"))


def element(name, **more):
    return {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]", "-", name), "name": name, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "copyrightText": "NOASSERTION", **more}


def main(version, *files):
    used = packages(libraries(files))
    ours = element("quiver", versionInfo=version, licenseConcluded="MIT", licenseDeclared="MIT", primaryPackagePurpose="APPLICATION")
    others = [element(name, versionInfo=number, licenseConcluded="NOASSERTION", licenseDeclared="NOASSERTION",
                      primaryPackagePurpose="LIBRARY", sourceInfo=f"built from Debian's source package {source}",
                      externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                     "referenceLocator": f"pkg:deb/debian/{name}@{number}?arch={machine}"}])
              for name, number, machine, source in used]
    made = datetime.datetime.fromtimestamp(release_time(), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": ours["SPDXID"]}]
    relations += [{"spdxElementId": ours["SPDXID"], "relationshipType": "DYNAMIC_LINK", "relatedSpdxElement": other["SPDXID"]}
                  for other in others]
    digest = hashlib.sha256(json.dumps([made, ours, others]).encode()).hexdigest()
    json.dump({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"quiver-{version}",
               "documentNamespace": f"urn:sha256:{digest}", "creationInfo": {"created": made, "creators": ["Tool: quiver-sbom"]},
               "packages": [ours, *others], "relationships": relations}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
