// Figures of Plotly, as plotly.py wrote them. This build of Plotly makes no code of text.

import Plotly from "plotly.js-strict-dist-min";
import { serve, type Look } from "./frame";

interface Content {
  data: unknown[];
  layout?: Record<string, unknown>;
}

serve<Content>(async (box, figure, look) => {
  if (!Array.isArray(figure.data)) throw new Error("The file holds no figure: it has no list `data`.");
  const layout = { ...figure.layout, autosize: true, width: undefined, height: undefined };
  await Plotly.react(box, figure.data, look.isDark ? darkened(layout, look) : layout, {
    responsive: true,
    displaylogo: false,
    modeBarButtonsToRemove: ["toImage", "sendDataToCloud"],
  });
});

/** plotly.py writes its light template into every figure. Colours that the author chose stay. */
function darkened(layout: Record<string, unknown>, look: Look): Record<string, unknown> {
  const axis = { gridcolor: look.line, linecolor: look.line, zerolinecolor: look.line, automargin: true };
  const solid = { ...axis, backgroundcolor: "rgba(0,0,0,0)", showbackground: false };
  const template = layout.template as { data?: unknown } | undefined;
  return {
    ...layout,
    template: {
      data: template?.data,
      layout: {
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        font: { color: look.text },
        colorway: look.colours,
        xaxis: axis,
        yaxis: axis,
        scene: { xaxis: solid, yaxis: solid, zaxis: solid },
      },
    },
  };
}
