// Molecules, from the files that wandb.Molecule takes.

import type { GLViewer } from "3dmol";
import { createViewer } from "3dmol/build/3Dmol-min.js";
import { serve } from "./frame";

interface Content {
  text: string;
  /** How the file's name ends: pdb, sdf, mol2, ... */
  format: string;
}

// Of a protein its course is shown; of anything smaller its atoms.
const MOST_ATOMS = 400;

let viewer: GLViewer | null = null;

serve<Content>((box, { text, format }, look) => {
  viewer ??= createViewer(box, {});
  viewer.removeAllModels();
  viewer.setBackgroundColor(look.isDark ? 0x16181d : 0xffffff, 1);
  const model = viewer.addModel(text, format === "sd" ? "sdf" : format, { keepH: true });
  const count = model.selectedAtoms({}).length;
  if (!count) throw new Error(`No atom was found in this ${format} file.`);
  if (count > MOST_ATOMS) {
    viewer.setStyle({}, { cartoon: { color: "spectrum" } });
    viewer.setStyle({ hetflag: true }, { stick: { radius: 0.15 } });
  } else {
    viewer.setStyle({}, { stick: { radius: 0.14 }, sphere: { scale: 0.25 } });
  }
  viewer.zoomTo();
  viewer.render();
});

addEventListener("resize", () => viewer?.resize());
