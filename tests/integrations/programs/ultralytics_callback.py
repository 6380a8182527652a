import os
from pathlib import Path

import numpy
from PIL import Image

os.environ.pop("PYTEST_CURRENT_TEST", None)  # It logs nothing where it finds that it is tested.
import ultralytics

# Four pictures with a box each: its own data sets come from the internet.
for part in ("train", "val"):
    for kind in ("images", "labels"):
        Path("data", kind, part).mkdir(parents=True)
    for number in range(4):
        noise = numpy.random.randint(0, 255, (64, 64, 3), dtype=numpy.uint8)
        Image.fromarray(noise).save(f"data/images/{part}/{number}.png")
        Path(f"data/labels/{part}/{number}.txt").write_text("0 0.5 0.5 0.4 0.4\n")
Path("data.yaml").write_text(
    f"path: {Path.cwd()}/data\ntrain: images/train\nval: images/val\nnames: [thing]\n"
)

ultralytics.settings.update({"wandb": True, "sync": False, "runs_dir": str(Path.cwd())})
ultralytics.YOLO("yolov8n.yaml").train(
    data="data.yaml", epochs=2, imgsz=64, batch=4, workers=0, device="cpu", amp=False, plots=False,
)  # fmt: skip
