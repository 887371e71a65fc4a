"""Packs a bundle as a wheel and as a tarball, with the licences of its packages and an SBOM."""

import base64
import email.parser
import gzip
import hashlib
import io
import json
import pathlib
import sys
import tarfile
import zipfile

bundle, out, version = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
NAME = "isolet_science"
DIRECTORY = "share/isolet/packages"
LICENCES = ("license", "licence", "copying", "notice", "authors")
# What a wheel says is taken for what it says, in the words of SPDX where they are known.
KNOWN = {
    "mit license": "MIT",
    "mit": "MIT",
    "bsd license": "BSD-3-Clause",
    "bsd 3-clause": "BSD-3-Clause",
    "apache software license": "Apache-2.0",
    "python software foundation license": "PSF-2.0",
}


def described(wheel):
    """Returns the name, version, licence and licence files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = next(name for name in names if name.endswith(".dist-info/METADATA"))
        text = archive.read(info).decode()
        metadata = email.parser.HeaderParser().parsestr(text)
        licence = metadata["License-Expression"] or (metadata["License"] or "").strip()
        if not licence or "\n" in licence or len(licence) > 80:
            classifiers = metadata.get_all("Classifier") or []
            said = [each for each in classifiers if each.startswith("License ::")]
            licence = said[-1].split(" :: ")[-1] if said else "see its licence"
        licence = KNOWN.get(licence.lower(), licence)
        directory = info.rsplit("/", 1)[0] + "/"
        files = {
            name.removeprefix(directory).removeprefix("licenses/"): archive.read(name)
            for name in names
            if not name.endswith("/")
            and name.startswith(directory)
            and name.rsplit("/", 1)[-1].lower().startswith(LICENCES)
        }
    return metadata["Name"], metadata["Version"], licence, files


wheels = sorted(bundle.glob("*.whl"))
packages = [(wheel, *described(wheel)) for wheel in wheels]
sbom = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.6",
    "version": 1,
    "metadata": {"component": {"type": "library", "name": "isolet-science", "version": version}},
    "components": [
        {
            "type": "library",
            "name": name,
            "version": its_version,
            "purl": f"pkg:pypi/{name.lower().replace('_', '-')}@{its_version}",
            "licenses": [{"license": {"name": licence}}],
            "hashes": [
                {"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}
            ],
        }
        for wheel, name, its_version, licence, _ in packages
    ],
}
sbom = (json.dumps(sbom, indent=2) + "\n").encode()
table = "\n".join(
    f"| {name} | {its_version} | {licence} |" for _, name, its_version, licence, _ in packages
)
metadata = f"""\
Metadata-Version: 2.4
Name: isolet-science
Version: {version}
Summary: numpy, pandas, matplotlib and others for the Python that isolet runs
Requires-Python: >=3.10
Description-Content-Type: text/markdown
Project-URL: Repository, https://github.com/isolet/isolet

# isolet-science

Packages for the Python that [isolet](https://github.com/isolet/isolet) runs: Pyodide's builds and
packages of the package index, with their bytecode. isolet finds them where this is installed, and
code imports them without further options.

```sh
pip install "isolet[science]"
isolet run -c 'import pandas; print(pandas.DataFrame({{"a": [1, 2]}}).describe())'
```

Each package has its own licence. Their texts are in `licenses` of this wheel's metadata.

| package | version | licence |
|-|-|-|
{table}
"""

files = {f"{DIRECTORY}/{path.name}": path.read_bytes() for path in [bundle / "bundle.json", *wheels]}
licences = {
    f"{name}/{path}": text for _, name, _, _, texts in packages for path, text in texts.items()
}
without = [name for _, name, _, _, texts in packages if not texts]
if without:
    print(f"no licence file in {', '.join(without)}", file=sys.stderr)


def write_wheel(path):
    info = f"{NAME}-{version}.dist-info"
    contents = {f"{NAME}-{version}.data/data/{name}": data for name, data in files.items()}
    headers, _, body = metadata.partition("\n\n")
    named = "".join(f"\nLicense-File: {name}" for name in sorted(licences))
    contents[f"{info}/METADATA"] = f"{headers}{named}\n\n{body}".encode()
    contents[f"{info}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: isolet\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    contents.update({f"{info}/licenses/{name}": licences[name] for name in sorted(licences)})
    contents[f"{info}/sboms/isolet-science.cdx.json"] = sbom
    record = io.StringIO()
    for name, data in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.write(f"{name},sha256={digest},{len(data)}\n")
    record.write(f"{info}/RECORD,,\n")
    contents[f"{info}/RECORD"] = record.getvalue().encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            # The wheels within are compressed already.
            how = zipfile.ZIP_STORED if name.endswith(".whl") else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name), data, how)


def write_tarball(path):
    with (
        open(path, "wb") as raw,
        gzip.GzipFile("", "wb", 1, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        others = {f"{DIRECTORY}/licenses/{name}": licences[name] for name in sorted(licences)}
        others[f"{DIRECTORY}/isolet-science.cdx.json"] = sbom
        for name, data in {**files, **others}.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))


out.mkdir(parents=True, exist_ok=True)
wheel = out / f"{NAME}-{version}-py3-none-any.whl"
write_wheel(wheel)
tarball = out / f"isolet-science-{version}.tar.gz"
write_tarball(tarball)
(out / f"isolet-science-{version}.cdx.json").write_bytes(sbom)
for made in (wheel, tarball):
    print(f"made `{made}`, {made.stat().st_size} bytes", file=sys.stderr)
