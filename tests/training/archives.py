"""Archives as the registries serve them, made in a test."""

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path


def tar(files: Mapping[str, str | bytes], compression: str = "gz") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=f"w:{compression}") as whole:
        for name, text in files.items():
            data = text.encode() if isinstance(text, str) else text
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            whole.addfile(entry, io.BytesIO(data))
        link = tarfile.TarInfo("elsewhere.cu")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        whole.addfile(link)
    return stream.getvalue()


def wheel(files: Mapping[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as whole:
        for name, text in files.items():
            whole.writestr(name, text)
    return stream.getvalue()


def deb(files: Mapping[str, str]) -> bytes:
    parts = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": tar({}, "xz") + b"x" * (len(tar({}, "xz")) % 2 == 0),
        "data.tar.xz": tar(files, "xz"),
    }
    whole = b"!<arch>\n"
    for name, data in parts.items():
        whole += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data
        whole += b"\n" * (len(data) % 2)
    return whole


def kernel(name: str, body: str = "", lines: int = 12) -> str:
    """A kernel of about ``lines`` lines that differ from those of every other name."""
    work = "\n".join(
        f"  float {name}_{i} = in[threadIdx.x * {i + 2}] + {name}_offset[{i}] / {name}_scale;"
        for i in range(lines)
    )
    return f"__global__ void {name}(const float* in, float* out) {{\n{work}\n{body}\n}}\n"


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
