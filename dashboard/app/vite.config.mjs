// Builds the page into the Python package. Addresses in the result are relative, since the page may
// live below any path; every file but the document has a hash in its name and lies there packed too.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { buildViewers } from "./viewers.mjs";

const target = process.env.RUNYARD_PAGE_FOLDER ?? "../../src/runyard/dashboard/static";

const pack = {
  name: "pack",
  closeBundle() {
    const folder = join(target, "assets");
    for (const name of readdirSync(folder)) {
      const content = readFileSync(join(folder, name));
      const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
      writeFileSync(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }));
      // Viewers are megabytes, and every browser takes them as gzip: they lie there in this form alone.
      if (name.startsWith("viewer-")) rmSync(join(folder, name));
      else writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content, brotli));
    }
  },
};

/** The viewers' documents, and their names for the page. */
function withViewers(viewers) {
  return {
    name: "viewers",
    generateBundle() {
      for (const { file, text } of Object.values(viewers)) {
        this.emitFile({ type: "asset", fileName: `assets/${file}`, source: text });
      }
    },
  };
}

export default async () => {
  const viewers = await buildViewers();
  const names = Object.fromEntries(Object.entries(viewers).map(([name, { file }]) => [name, file]));
  return {
    base: "./",
    define: { VIEWER_FILES: JSON.stringify(names) },
    plugins: [withViewers(viewers), pack],
    esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
    build: {
      outDir: target,
      emptyOutDir: true,
      target: "es2022",
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      // What jsPDF needs for HTML and pictures, which we never give it.
      rollupOptions: { external: ["canvg", "dompurify", "html2canvas"] },
    },
  };
};
