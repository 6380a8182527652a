// A drawing as PDF, for papers: lines stay lines. Loaded when it is asked for.

import { jsPDF } from "jspdf";
import { svg2pdf } from "svg2pdf.js";

export async function toPdf(svg: string): Promise<Blob> {
  const element = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement as unknown as SVGSVGElement;
  const [width, height] = [Number(element.getAttribute("width")), Number(element.getAttribute("height"))];
  const page = new jsPDF({ unit: "px", format: [width, height], orientation: width > height ? "landscape" : "portrait", hotfixes: ["px_scaling"] });
  await svg2pdf(element, page, { x: 0, y: 0, width, height });
  return page.output("blob");
}
