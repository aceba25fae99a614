"""A table with all that it rests on, in one archive: `show_results.py --bundle` writes it, `--verify` computes it anew.

An archive holds the runs' manifests and record files where they lie below the output root, and `bundle.json`: the data
file's hash, every file's hash, how cases were drawn, and the figures as printed. It needs no key and no model to be
verified, but the data file, which is not in it. Nothing is unpacked that is no file of a run, or larger than one can be.
Source: ours.
"""

import hashlib
import json
import math
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from checkpoints import Run, is_device_name
from errors import CheckpointError, SettingsError
from records import RUN_FILES, shape_fault
from replies import decode_utf8

CONTENTS = "bundle.json"
PATHS = re.compile("|".join(re.escape(text).replace(re.escape("{run}"), r"[^/\\:]+/[^/\\:]+") for text in RUN_FILES))
LARGEST, MOST = 2**29, 2**32  # bytes of a file and of all; five runs of the data file have some 50 MB
ALL_ALIKE = (1980, 1, 1, 0, 0, 0)  # the time of every member, so that the same records make the same bytes


class Contents(TypedDict):
    """`bundle.json`."""

    dataset_sha256: str
    sampling: dict[str, Any]
    files: dict[str, str]
    figures: list[Any]


def write_bundle(
    path: Path, root: Path, runs: Sequence[Run], dataset_sha256: str, sampling: dict[str, Any], figures: list[Any]
) -> int:
    """Write an archive of these runs and their figures, which must not exist yet; how many files are in it."""
    folders = sorted(run.folder for run in runs)
    names = [text.format(run=folder) for folder in folders for text in RUN_FILES]
    there = sorted(name for name in names if (root / name).exists())
    hashes = {}
    try:
        with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as archive:
            try:
                for name in there:
                    raw = (root / name).read_bytes()
                    hashes[name] = hashlib.sha256(raw).hexdigest()
                    archive.writestr(_member(name), raw)
                contents = Contents(dataset_sha256=dataset_sha256, sampling=sampling, files=hashes, figures=figures)
                archive.writestr(_member(CONTENTS), json.dumps(contents, indent=1).encode("ascii"))
            except BaseException:
                path.unlink(missing_ok=True)  # half an archive would look like one
                raise
    except FileExistsError:
        raise SettingsError(f"--bundle {path}: exists already; take another name") from None
    except OSError as error:
        raise SettingsError(f"--bundle {path}: cannot be written ({error.strerror})") from error
    return len(there)


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, ALL_ALIKE)
    member.compress_type = zipfile.ZIP_DEFLATED
    return member


def unpack(path: Path, root: Path) -> tuple[Contents, list[str]]:
    """Unpack an archive's runs below a folder; its contents, and each file that is missing, surplus or not what its hash
    says. CheckpointError for a file that is no such archive or has a member that may not be unpacked.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {member.filename: member for member in checked(path, archive.infolist())}
            if CONTENTS not in members:
                raise CheckpointError(f"{path}: holds no {CONTENTS}, so it is no archive of --bundle")
            contents: Contents = json.loads(decode_utf8(_bytes(archive, members.pop(CONTENTS))))
            if fault := shape_fault(contents, Contents, CONTENTS):
                raise CheckpointError(f"{path}: {fault}; get the archive again")
            faults = [
                f"{name}: in the list of files, not in the archive" for name in contents["files"] if name not in members
            ]
            for name, member in members.items():
                raw = _bytes(archive, member)
                listed = contents["files"].get(name)
                if listed is None:
                    faults.append(f"{name}: in the archive, not in the list of files")
                elif listed != hashlib.sha256(raw).hexdigest():
                    faults.append(f"{name}: not the file that was bundled, by its hash")
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes(raw)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        RecursionError,
    ) as error:
        raise CheckpointError(f"{path}: not a readable archive: {error}; get it again") from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror or error})") from error
    return contents, faults


def checked(path: Path, members: Sequence[zipfile.ZipInfo]) -> Iterator[zipfile.ZipInfo]:
    """The members, if all of them may be unpacked; sizes are as declared, beyond which nothing is read."""
    seen, whole = set[str](), 0
    for member in members:
        name, whole = member.filename, whole + member.file_size
        parts = name.split("/")
        hidden = any(part.startswith(".") or is_device_name(part) or not part.isprintable() for part in parts)
        why = ""
        if name != CONTENTS and (hidden or not PATHS.fullmatch(name)):
            why = "no file of a run"
        elif stat.S_ISLNK(member.external_attr >> 16):
            why = "a link"
        elif member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            why = "packed in an unknown way"
        elif name.casefold() in seen:
            why = "there twice"
        elif member.file_size > LARGEST or whole > MOST:
            why = "too large"
        if why:
            raise CheckpointError(f"{path}: the member {name!r} is {why}; nothing was unpacked")
        seen.add(name.casefold())
        yield member


def _bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    with archive.open(member) as file:
        return file.read(member.file_size)


def different_figures(then: Any, now: Any, where: str = "figures") -> Iterator[str]:
    """Each place in which the figures computed now are not those of then; floats may differ in the tenth digit."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in {**then, **now}:
            if key not in then or key not in now:
                yield f"{where}.{key}: only {'then' if key in then else 'now'}"
            else:
                yield from different_figures(then[key], now[key], f"{where}.{key}")
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for place, pair in enumerate(zip(then, now, strict=True)):
            yield from different_figures(*pair, f"{where}[{place}]")
    elif not _same(then, now):
        yield f"{where}: {_shown(then)} then, {_shown(now)} now"


def _same(then: Any, now: Any) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (then, now))
    return math.isclose(then, now, rel_tol=1e-9, abs_tol=1e-12) if numbers else bool(then == now)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]


def told(path: Path, faults: Sequence[str], counted: Mapping[str, int]) -> str:
    """What a verification comes to; CheckpointError if anything differs."""
    if faults:
        rest = f"\n  … and {len(faults) - 20} more" if len(faults) > 20 else ""
        raise CheckpointError(
            f"{path}: {len(faults)} differences:" + "".join(f"\n  {fault}" for fault in faults[:20]) + rest
        )
    return (
        f"{path}: verified, "
        + " and ".join(f"{count} {what}" for what, count in counted.items())
        + " are as they were."
    )


def count_figures(value: Any) -> int:
    """How many numbers stand in a JSON value."""
    if isinstance(value, dict):
        return sum(map(count_figures, value.values()))
    if isinstance(value, list):
        return sum(map(count_figures, value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))
