"""Draw docs/terminal.svg: a real session in a terminal of 80 columns.

    .venv/bin/python scripts/terminal_picture.py

Runs the commands in a fresh state folder on a pseudo terminal, and draws what they printed.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 80
SESSION = [
    ("runyard sweep sweep.yaml -j 2 2>/dev/null", True),
    ("runyard show --best -l 5", True),
    ("runyard run -q -- python train.py --lr 0.02 >/dev/null 2>&1", False),
    ("runyard show", True),
]
# rich's own frame loads a font from the network; this one asks for what is there.
FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">{matrix}</g></g></svg>
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "spirals").mkdir()
        for name in ("train.py", "sweep.yaml"):
            source = ROOT / "examples" / "spirals" / name
            (home / "spirals" / name).write_text(source.read_text())
        environment = {
            **os.environ,
            "RUNYARD_HOME": str(home / "state"),
            "HOME": folder,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "TERM": "xterm-256color",
        }
        out = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
        for command, shown in SESSION:
            printed = run_on_terminal(command, home / "spirals", environment)
            if shown:
                out.print(Text(f"$ {command.split(' 2>')[0].replace(' -q', '')}", style="bold"))
                text = printed.replace("\r\n", "\n").replace(str(home), "~")
                out.print(Text.from_ansi(text.rstrip("\n")), soft_wrap=True)
                out.print()
        subprocess.run(["runyard", "server", "stop"], env=environment, check=True)
    picture = out.export_svg(title="runyard", theme=MONOKAI, code_format=FRAME, unique_id="runyard")
    (ROOT / "docs" / "terminal.svg").write_text(picture)


def run_on_terminal(command: str, folder: Path, environment: dict[str, str]) -> str:
    """What a command prints on a terminal of our width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    process = subprocess.Popen(
        ["sh", "-c", command], cwd=folder, env=environment, stdout=theirs, stderr=theirs,
        stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    printed = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        printed += piece
    process.wait()
    os.close(ours)
    return printed.decode()


if __name__ == "__main__":
    main()
