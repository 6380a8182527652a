// Builds the page into the Python package. Addresses in the result are relative, since the page may
// live below any path; every file but the document has a hash in its name and lies there packed too.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const target = process.env.RUNYARD_PAGE_FOLDER ?? "../../src/runyard/dashboard/static";

const pack = {
  name: "pack",
  closeBundle() {
    const folder = join(target, "assets");
    for (const name of readdirSync(folder)) {
      const content = readFileSync(join(folder, name));
      const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
      writeFileSync(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }));
      writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content, brotli));
    }
  },
};

export default {
  base: "./",
  plugins: [pack],
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    outDir: target,
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
};
