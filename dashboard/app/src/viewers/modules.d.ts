declare module "plotly.js-strict-dist-min" {
  const Plotly: { react(box: HTMLElement, data: unknown[], layout: object, config: object): Promise<unknown> };
  export default Plotly;
}

declare module "3dmol/build/3Dmol-min.js" {
  export { createViewer } from "3dmol";
}
