"""Sets up .venv with what building needs, from a bare Python and without root.

Uses the standard library only, and no syntax newer than Python 3.7, so that the message about an older
Python arrives. `make` calls it; so can you: `python3 tools/bootstrap.py`.
"""

import hashlib
import html
import os
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

OLDEST_PYTHON = (3, 11)
PIP_WITH_GROUPS = "pip>=25.1"
NO_COMPILER = "--no-compiler"  # a wheel is compiled by one from PyPI
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools/backend"))

from tilewise_compiler import missing_compiler  # noqa: E402


class SetupError(Exception):
    """Something is missing that this script cannot install; the text says how to get it."""


def check_python() -> None:
    if sys.version_info < OLDEST_PYTHON:
        raise SetupError(
            f"Python {'.'.join(map(str, OLDEST_PYTHON))} or newer is needed; {sys.executable} is "
            f"{sys.version.split()[0]}. Try: make PYTHON=/path/to/python3"
        )


def make_environment(venv: pathlib.Path) -> None:
    """Makes the folder with a working pip in it, also where Debian has split ensurepip off."""
    create = [sys.executable, "-m", "venv"]
    made = subprocess.run(
        [*create, str(venv)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if made.returncode == 0:
        return
    print("This Python has no ensurepip: fetching pip itself", flush=True)
    made = subprocess.run(
        [*create, "--clear", "--without-pip", str(venv)], stderr=subprocess.PIPE, text=True, check=False
    )
    if made.returncode != 0:
        raise SetupError(f"{sys.executable} cannot make a virtual environment: {made.stderr.strip()}")
    with tempfile.TemporaryDirectory() as folder:
        wheel = fetch_pip_wheel(pathlib.Path(folder))
        install = [str(venv / "bin/python"), str(wheel / "pip"), "install", "--quiet", str(wheel)]
        subprocess.run(install, check=True)


def package_index() -> str:
    """The index that pip would use, from its variables and its configuration files."""
    if os.environ.get("PIP_INDEX_URL"):
        return os.environ["PIP_INDEX_URL"]
    home = pathlib.Path.home()
    configured = os.environ.get("PIP_CONFIG_FILE")
    files = [pathlib.Path(configured)] if configured else []
    files += [home / ".config/pip/pip.conf", home / ".pip/pip.conf"]
    files += [pathlib.Path("/etc/xdg/pip/pip.conf"), pathlib.Path("/etc/pip.conf")]
    for file in files:
        if file.is_file():
            match = re.search(r"^\s*index[-_]url\s*=\s*(\S+)", file.read_text(encoding="utf-8"), re.MULTILINE)
            if match:
                return match.group(1)
    return "https://pypi.org/simple"


def fetch_pip_wheel(folder: pathlib.Path) -> pathlib.Path:
    """Downloads the newest pip wheel that the index lists, checks its hash, returns its path."""
    certificates = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    context = ssl.create_default_context(cafile=certificates)
    page_url = package_index().rstrip("/") + "/pip/"

    def get(url: str) -> bytes:
        try:
            with urllib.request.urlopen(url, timeout=60, context=context) as answer:
                return bytes(answer.read())
        except OSError as error:
            raise SetupError(f"pip could not be fetched from {url}: {error}") from error

    links = re.findall(r'href="([^"]+/pip-(\d+(?:\.\d+)*)-py3-none-any\.whl[^"]*)"', get(page_url).decode())
    if not links:
        raise SetupError(f"{page_url} lists no pip wheel; set PIP_INDEX_URL to a package index")
    link, _ = max(links, key=lambda pair: [int(part) for part in pair[1].split(".")])
    url, fragment = urllib.parse.urldefrag(urllib.parse.urljoin(page_url, html.unescape(link)))
    content = get(url)
    if fragment.startswith("sha256=") and hashlib.sha256(content).hexdigest() != fragment[len("sha256=") :]:
        raise SetupError(f"{url} does not have the hash that the index names")
    wheel = folder / urllib.parse.unquote(url.rsplit("/", 1)[1])
    wheel.write_bytes(content)
    return wheel


def install_tools(venv: pathlib.Path) -> None:
    """Installs the build requirements at the versions that pyproject.toml names."""
    pip = [str(venv / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip.append("--no-compile")  # most modules are never imported
    subprocess.run([*pip, PIP_WITH_GROUPS], check=True)
    subprocess.run([*pip, "--group", "build"], check=True, cwd=ROOT)


def main() -> None:
    words = [word for word in sys.argv[1:] if word != NO_COMPILER]
    venv = ROOT / (words[0] if words else ".venv")
    try:
        check_python()
        problem = missing_compiler(os.environ.get("CXX"))
        if problem and NO_COMPILER not in sys.argv:
            raise SetupError(problem)
        if not (venv / "bin/pip").exists():
            print(f"Making {venv.name} with {sys.executable}", flush=True)
            make_environment(venv)
        print(f"Fetching build tools into {venv.name}", flush=True)
        install_tools(venv)
    except SetupError as error:
        sys.exit(f"Cannot set up: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit("Cannot set up: this command failed: {}".format(" ".join(map(str, error.cmd))))


if __name__ == "__main__":
    main()
