// Builds each viewer into one HTML document that holds its only script. A viewer is shown in a frame
// without an origin, whose document may load nothing: that is why the script stands in the document, and
// why the document names the script's hash. It also works where a proxy wants cookies for every address.
import { createHash } from "node:crypto";
import { build } from "esbuild";

const VIEWERS = ["vega", "plotly", "solid", "molecule"];

export async function buildViewers() {
  const documents = {};
  for (const name of VIEWERS) {
    const script = await bundle(name);
    const hash = createHash("sha256").update(script).digest("base64");
    const file = `viewer-${name}-${createHash("sha256").update(script).digest("hex").slice(0, 10)}.html`;
    documents[name] = { file, text: documentOf(script, hash) };
  }
  return documents;
}

async function bundle(name) {
  const result = await build({
    entryPoints: [`src/viewers/${name}.ts`],
    bundle: true,
    write: false,
    minify: true,
    format: "iife",
    target: "es2022",
    legalComments: "none",
    logLevel: "error",
  });
  // The parser of HTML looks for the end of a script in its text.
  return result.outputFiles[0].text.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
}

function documentOf(script, hash) {
  return [
    "<!doctype html><meta charset=utf-8><title>Viewer</title>",
    `<meta http-equiv="Content-Security-Policy" content="script-src 'sha256-${hash}'">`,
    "<style>html,body{margin:0;height:100%;overflow:hidden}#view{height:100%}canvas{display:block}</style>",
    `<div id=view></div><script>${script}</script>`,
  ].join("\n");
}
