"""Logs one of everything that wandb can show: a page to look at, and what the tests look at.

runyard run -- python gallery.py
"""

from __future__ import annotations

import argparse
import base64
import io
import math
import struct
import tempfile
import wave
from pathlib import Path

import numpy as np
import plotly.graph_objects
import wandb
from PIL import Image

CLASSES = {0: "sky", 1: "tree", 2: "bird"}
STEPS = 5


def picture(step: int, size: int = 96) -> np.ndarray:
    """A sky, a tree, and a bird that flies from left to right."""
    y = np.mgrid[0:size, 0:size][0]
    pixels = np.zeros((size, size, 3), "uint8")
    pixels[..., 2] = 150 + 100 * y // size
    pixels[..., 1] = 120 + 80 * y // size
    pixels[mask(step, size) == 1] = (40, 110, 50)
    pixels[mask(step, size) == 2] = (250, 200, 60)
    return pixels


def mask(step: int, size: int = 96) -> np.ndarray:
    y, x = np.mgrid[0:size, 0:size]
    classes = np.zeros((size, size), "uint8")
    classes[(abs(x - size * 0.3) < (y - size * 0.35) * 0.45) & (y < size * 0.95)] = 1
    middle = size * (0.2 + 0.15 * step)
    classes[(x - middle) ** 2 + (y - size * 0.25) ** 2 < (size * 0.08) ** 2] = 2
    return classes


def labelled(step: int) -> wandb.Image:
    """A picture with two masks, and boxes of both of W&B's forms."""
    middle = 0.2 + 0.15 * step
    boxes = [
        {
            "position": {"middle": [middle, 0.25], "width": 0.2, "height": 0.2},
            "class_id": 2,
            "box_caption": "bird 0.93",
            "scores": {"sure": 0.93},
        },
        {
            "position": {"minX": 10, "maxX": 55, "minY": 33, "maxY": 92},
            "domain": "pixel",
            "class_id": 1,
            "scores": {"sure": 0.61},
        },
    ]
    return wandb.Image(
        picture(step),
        caption=f"a bird at step {step}",
        masks={
            "prediction": {"mask_data": mask(step), "class_labels": CLASSES},
            "truth": {"mask_data": np.roll(mask(step), 4, axis=1), "class_labels": CLASSES},
        },
        boxes={"prediction": {"box_data": boxes, "class_labels": CLASSES}},
    )


def sound(folder: Path, hertz: float) -> wandb.Audio:
    path = folder / f"{hertz:.0f}.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        tone = (8000 * math.sin(2 * math.pi * hertz * place / 8000) for place in range(4000))
        file.writeframes(b"".join(struct.pack("<h", int(value)) for value in tone))
    return wandb.Audio(str(path), caption=f"{hertz:.0f} Hz")


def films(folder: Path) -> dict[str, object]:
    """A GIF, which wandb calls a video too, and a WebM."""
    frames = [Image.fromarray(picture(step)) for step in range(STEPS)]
    gif = folder / "bird.gif"
    frames[0].save(gif, save_all=True, append_images=frames[1:], duration=200, loop=0)
    webm = folder / "ball.webm"
    webm.write_bytes(base64.b64decode(BALL))
    return {
        "videos/gif": wandb.Video(str(gif), caption="a GIF", format="gif"),
        "videos/two": [
            wandb.Video(str(webm), caption="a WebM", format="webm"),
            wandb.Video(str(gif), caption="a GIF", format="gif"),
        ],
    }


def solids(folder: Path) -> dict[str, object]:
    """Point clouds in each of W&B's forms, a scene with boxes, and meshes in files."""
    angle = np.linspace(0, 20 * math.pi, 4000)
    spiral = np.stack([np.cos(angle) * angle, np.sin(angle) * angle, angle * 2], axis=1)
    colours = np.stack([angle / angle.max() * 255, 90 + 0 * angle, 255 - angle * 4], axis=1)
    kinds = 1 + (np.arange(len(angle)) // 400) % 14
    corners = [[x, y, z] for x in (-20, 20) for y in (-20, 20) for z in (0, 40)]
    scene = {
        "type": "lidar/beta",
        "points": spiral,
        "boxes": np.array([{"corners": corners, "label": "the middle", "color": [255, 160, 0]}]),
        "vectors": np.array([{"start": [0, 0, 0], "end": [0, 0, 120]}]),
    }
    cube = folder / "cube.obj"
    places = [f"v {x} {y} {z}\n" for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    sides = ["1 2 4 3", "5 7 8 6", "1 5 6 2", "3 4 8 7", "1 3 7 5", "2 6 8 4"]
    cube.write_text("".join([*places, *(f"f {side}\n" for side in sides)]))
    stone = folder / "stone.stl"
    tips = [(0, 0, 1), (1, 0, 0), (0, 1, 0), (-1, 0, 0), (0, -1, 0), (0, 0, -1)]
    lines = ["solid stone"]
    for tip in (0, 5):
        for side in range(4):
            corners_of_face = (tips[tip], tips[1 + side], tips[1 + (side + 1) % 4])
            lines += ["facet normal 0 0 0", "outer loop"]
            lines += [f"vertex {x} {y} {z}" for x, y, z in corners_of_face]
            lines += ["endloop", "endfacet"]
    stone.write_text("\n".join([*lines, "endsolid stone", ""]))
    return {
        "solids/points": wandb.Object3D(spiral, caption="x y z"),
        "solids/kinds": wandb.Object3D(np.column_stack([spiral, kinds])),
        "solids/colours": wandb.Object3D(np.column_stack([spiral, colours])),
        "solids/scene": wandb.Object3D(scene),
        "solids/mesh": [wandb.Object3D(str(cube)), wandb.Object3D(str(stone))],
    }


def benzene() -> str:
    """Six of carbon, six of hydrogen, as a PDB file."""
    atoms = []
    for element, radius in (("C", 1.39), ("H", 2.48)):
        for corner in range(6):
            angle = corner * math.pi / 3
            atoms.append((element, radius * math.cos(angle), radius * math.sin(angle)))
    lines = [
        f"HETATM{number:5d}  {element}{number:<3d}BNZ A   1    {x:8.3f}{y:8.3f}   0.000  1.00  0.00"
        f"          {element:>2s}"
        for number, (element, x, y) in enumerate(atoms, 1)
    ]
    bonds = [f"CONECT{c:5d}{1 + c % 6:5d}{c + 6:5d}" for c in range(1, 7)]
    return "\n".join([*lines, *bonds, "END", ""])


def charts(random: np.random.Generator) -> dict[str, object]:
    """Everything in `wandb.plot`, and the preset that `roc_curve` and `pr_curve` use."""
    points = wandb.Table(
        columns=["x", "y", "kind"],
        data=[[x, math.sin(x / 5) + kind, f"kind {kind}"] for kind in range(2) for x in range(40)],
    )
    heights = wandb.Table(columns=["height"], data=[[value] for value in random.normal(size=300)])
    counts = [["owl", 12], ["crow", 30], ["tit", 21]]
    animals = wandb.Table(columns=["animal", "count"], data=counts)
    truth = random.integers(0, 3, 200)
    guess = np.where(random.random(200) < 0.8, truth, random.integers(0, 3, 200))
    powers = {"owl": 0.3, "crow": 0.6}
    curve = [[name, x / 20, (x / 20) ** powers[name]] for name in powers for x in range(21)]
    roc = wandb.Table(columns=["class", "fpr", "tpr"], data=curve)
    return {
        "charts/line": wandb.plot.line(points, "x", "y", stroke="kind", title="Two waves"),
        "charts/scatter": wandb.plot.scatter(points, "x", "y", title="Points"),
        "charts/bar": wandb.plot.bar(animals, "animal", "count", title="Animals"),
        "charts/histogram": wandb.plot.histogram(heights, "height", title="Heights"),
        "charts/series": wandb.plot.line_series(
            xs=list(range(20)),
            ys=[[x**0.5 for x in range(20)], [x**0.7 for x in range(20)]],
            keys=["slow", "fast"],
            title="Growth",
            xname="epoch",
        ),
        "charts/confusion": wandb.plot.confusion_matrix(
            y_true=truth.tolist(),
            preds=guess.tolist(),
            class_names=["owl", "crow", "tit"],
            title="Birds",
        ),
        # What wandb.plot.roc_curve sends; that function itself needs scikit-learn.
        "charts/roc": wandb.plot_table(
            "wandb/area-under-curve/v0",
            roc,
            {"x": "fpr", "y": "tpr", "class": "class"},
            {
                "title": "ROC",
                "x-axis-title": "False positive rate",
                "y-axis-title": "True positive rate",
            },
        ),
    }


def own_chart() -> dict[str, object]:
    """A chart that we define ourselves: the newest clients can."""
    api = wandb.Api()
    if not hasattr(api, "create_custom_chart"):
        return {}
    bars = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "data": {"name": "wandb"},
        "title": "${string:title}",
        "mark": "bar",
        "encoding": {
            "x": {"field": "${field:when}", "type": "ordinal"},
            "y": {"field": "${field:much}", "type": "quantitative"},
        },
    }
    chart = api.create_custom_chart(
        api.default_entity, "rain", "Rain by month", "vega2", "private", bars
    )
    rain = wandb.Table(columns=["month", "rain.mm"], data=[["May", 40], ["June", 65], ["July", 20]])
    fields = {"when": "month", "much": "rain.mm"}
    return {"charts/own": wandb.plot_table(chart, rain, fields, {"title": "Rain"})}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shift", type=int, default=0, help="another bird for another run")
    shift = parser.parse_args().shift
    random = np.random.default_rng(shift)
    with tempfile.TemporaryDirectory() as name, wandb.init(project="gallery") as run:
        folder = Path(name)
        growing = wandb.Table(columns=["step", "bird"], log_mode="INCREMENTAL")
        for step in range(STEPS):
            growing.add_data(step, wandb.Image(picture(step + shift)))
            run.log(
                {
                    "loss": 1 / (1 + step),
                    "pictures/one": labelled(step + shift),
                    "pictures/some": [
                        wandb.Image(picture(step + place), caption=f"number {place}")
                        for place in range(4)
                    ],
                    "weights": wandb.Histogram(random.normal(size=500) / (1 + step)),
                    "tables/growing": growing,
                }
            )
        figure = plotly.graph_objects.Figure(
            plotly.graph_objects.Surface(z=np.outer(np.hanning(20), np.hanning(20)).tolist())
        )
        figure.update_layout(title="A hill")
        mixed = wandb.Table(columns=["name", "bird", "call", "page", "score"])
        for place in range(3):
            mixed.add_data(
                f"bird {place}",
                wandb.Image(picture(place + shift), caption=f"bird {place}"),
                sound(folder, 330 + 110 * place),
                wandb.Html(f"<b>bird {place}</b>"),
                0.9 - place / 10,
            )
        run.log(
            {
                **charts(random),
                **own_chart(),
                **films(folder),
                **solids(folder),
                "molecules/benzene": wandb.Molecule(
                    io.StringIO(benzene()), file_type="pdb", caption="benzene"
                ),
                "plotly": figure,
                "sound": sound(folder, 440),
                "pages/html": wandb.Html("<h1 style='color: teal'>A page</h1>with its style"),
                "tables/mixed": mixed,
            }
        )


# A second of a ball that rolls, as WebM.
BALL = """
GkXfo59ChoEBQveBAULygQRC84EIQoKEd2VibUKHgQRChYECGFOAZwEAAAAAAASoEU2bdLlNu4tTq4QVSalmU6yBbk27
i1OrhBZUrmtTrIGTTbuLU6uEH0O2dVOsgdRNu4xTq4QcU7trU6yCBJbsrgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
AAAAAAAAAAAAAAAAAAAAAAAAAAAVSalmoCrXsYMPQkBEiYREZw8KTYCGQ2hyb21lV0GGQ2hyb21lFlSua7yuuteBAXPF
h/VrY0TuSWWDgQFV7oEBhoVWX1ZQOOCdsIFAuoFAU8CBAVWwkFWxgQFVuYECVbqBDVW7gQEfQ7Z1AQAAAAAAA7bngQCg
QJah5YEAAACQBACdASpAAEAACgcIhYWImYSIMIIB4/hkcZtiV/3QgvPhTxOBIwcWe/U8hFQA/uX6PZnfriGR/ReAkFeN
bCFsV6mnvjk+VAKum8WvpGNg7Kgaf3Y2PxrPi5d4E2FjBcwAdaGspqrugQGlpfACAJ0BKkAAQAAKhwiFhYiZhIg4AgAG
cDxCYAqyIPcwAP7rrgCg+qHZgQBjAHEDACgRdAAYDPJYyF3Sv+IAM26MbEOWnkC4PjeMMP7niZ3fhfZWgs2mR2xUw33m
KtxI6EfpfZsSiQjyQgEMjzwHbwTJ1075WF7qgDh6gjRhGyxaBAB1oZmml+6BAaWS0QEAKhHAABgAGFgv9AAIjoAA+4EA
oNOhsoEAyADxAgAqEXgAGAAi0f/0AALjE0YycJrfpVcfwP7mzCxr2sxBEp+hzwyfhmFU1ZAAdaGZppfugQGlktEBACoR
wAAYABhYL/QACI6AAPuBY6DRobCBAT0A8QIAKhFkABgAH9H/9AAQ7wJMIl33KT+/oQD+6DaVNDsypUMAFdL6jrsEcAB1
oZmml+6BAaWS0QEAKhHAABgAGFgv9AAIjoAA+4HIoMyhqoEBoQCxAgAqEVAAGAAc0f/0AAZNEoRdCw2jzMD+6Wczoa4t
GAC8EAaAAHWhmaaX7oEBpZLRAQAqEcAAGAAYWC/0AAiOgAD7ggE9oOKhwIECBwBxAwAqEQwAGAQ/8HRuf9GGp+d7bpvb
JW+347lpUACkB6Hx3QAv7qRnz98SWJrMlD9cfqnSUxkcPT/C6gB1oZmml+6BAaWS0QEAKhGsABgAGFgv9AAIjoAA+4IB
oaDfob2BAmsAUQMAKhD8AB6loA2SA/qgfG2qrUbuZXofPgBRIWAWD2LQI2FMXDw9DCboiGw/pzLC+/8K2pvnku4AdaGZ
ppfugQGlktEBACoRmAAYABhYL/QACI6AAPuCAgegyKGmgQLPAHECACwQ7AAYABtC//QAriepLJaJzKA3uPl3l+j9Fxba
oAB1oZmml+6BAaWS0QEAKhFUFGAAYWC/0AAiOgAA+4ICa6C7oZmBAzQAMQIALBFgFGAAYWC/0AAmqk3dpAAAdaGZppfu
gQGlktEBACoRkAAYABhYL/QACI6AAPuCAs+g2qG4gQOcAJECACwQ1AAe50X1zvEHnhgAlC4NYHPE0l68Do5InqrIMmIz
sDDYRgAGYoLAcLMbCIMbuAB1oZmml+6BAaWS0QEAKhF8ABgAGFgv9AAIjoAA+4IDNBxTu2uNu4uzgQC3hveBAfGB1A==
"""


if __name__ == "__main__":
    main()
