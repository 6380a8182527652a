// An image with its masks and boxes, each class in a colour of its own that can be switched off.

import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api";
import { colourOf, faded } from "../colours";
import { useObserved } from "../observe";
import { theme, type Theme } from "../theme";
import type { Files } from "./files";
import type { Box, Boxes, Labels, Media } from "./values";

interface Layer {
  kind: "masks" | "boxes";
  name: string;
  labels: Labels;
}

// Of these nobody wants to see where they are.
const BACKGROUND = /^(background|void|unlabell?ed|ignore)$/i;

export function Picture({ value, files, alt, isSmall, onClick }: { value: Media; files: Files; alt: string; isSmall?: boolean; onClick?: () => void }) {
  const layers: Layer[] = (["masks", "boxes"] as const).flatMap((kind) => Object.keys(value[kind] ?? {}).sort().map((name) => ({ kind, name, labels: files.labels(kind, name) })));
  const [hidden, setHidden] = useState<ReadonlySet<string>>(() => new Set(layers.flatMap((layer) => Object.entries(layer.labels).flatMap(([id, label]) => (BACKGROUND.test(label) ? [idOf(layer, id)] : [])))));
  const [size, setSize] = useState<[number, number] | null>(null);
  const toggle = (id: string) => {
    const next = new Set(hidden);
    if (!next.delete(id)) next.add(id);
    setHidden(next);
  };
  const picture = (
    <img
      src={files.url(value.path ?? "")}
      alt={alt}
      loading="lazy"
      onLoad={(event) => setSize([event.currentTarget.naturalWidth, event.currentTarget.naturalHeight])}
    />
  );
  return (
    <figure class={`picture${isSmall ? " small" : ""}`}>
      {/* A click on a box, which lies above the button, comes here too. */}
      <div class={`picture-frame${onClick ? " can-enlarge" : ""}`} onClick={onClick}>
        {picture}
        {onClick && <button class="picture-button" title="Enlarge" aria-label={`Enlarge ${alt}`} />}
        {size &&
          layers.map((layer) =>
            layer.kind === "masks" ? (
              <Mask key={`m${layer.name}`} url={files.url(value.masks![layer.name]!.path)} layer={layer} hidden={hidden} />
            ) : (
              <BoxLayer key={`b${layer.name}`} boxes={value.boxes![layer.name]!} files={files} layer={layer} hidden={hidden} size={size} />
            ),
          )}
      </div>
      {value.caption && <figcaption>{value.caption}</figcaption>}
      {!isSmall && layers.map((layer) => <Legend layer={layer} hidden={hidden} toggle={toggle} />)}
    </figure>
  );
}

function idOf(layer: Layer, id: string | number): string {
  return `${layer.kind} ${layer.name} ${id}`;
}

function colourOfClass(id: number, colours: Theme): string {
  return colourOf(id + 1, colours);
}

function Legend({ layer, hidden, toggle }: { layer: Layer; hidden: ReadonlySet<string>; toggle: (id: string) => void }) {
  const colours = useObserved(theme);
  return (
    <div class="row wrap legend" role="group" aria-label={`${layer.kind === "masks" ? "Mask" : "Boxes"} ${layer.name}`}>
      <span class="faint">{layer.kind === "masks" ? "mask" : "boxes"} {layer.name}</span>
      {Object.entries(layer.labels).map(([id, label]) => (
        <button key={id} class="quiet class-name" aria-pressed={!hidden.has(idOf(layer, id))} onClick={() => toggle(idOf(layer, id))}>
          <span class="swatch" style={{ background: colourOfClass(Number(id), colours) }} />
          {label}
        </button>
      ))}
    </div>
  );
}

/** A mask is a grey image whose values are classes. */
function Mask({ url, layer, hidden }: { url: string; layer: Layer; hidden: ReadonlySet<string> }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const colours = useObserved(theme);
  const [image, setImage] = useState<HTMLImageElement | null>(null);
  useEffect(() => {
    const loaded = new Image();
    loaded.onload = () => setImage(loaded);
    loaded.src = url;
  }, [url]);
  useEffect(() => {
    if (!image || !canvas.current) return;
    const { naturalWidth: width, naturalHeight: height } = image;
    [canvas.current.width, canvas.current.height] = [width, height];
    const context = canvas.current.getContext("2d", { willReadFrequently: true })!;
    context.drawImage(image, 0, 0);
    const pixels = context.getImageData(0, 0, width, height);
    const painted = new Map<number, [number, number, number, number]>();
    const paintOf = (id: number) => {
      const colour = hidden.has(idOf(layer, id)) ? [0, 0, 0, 0] : [...colourOfClass(id, colours).match(/\d+/g)!.map(Number), 140];
      painted.set(id, colour as [number, number, number, number]);
      return painted.get(id)!;
    };
    for (let at = 0; at < pixels.data.length; at += 4) {
      const id = pixels.data[at]!;
      pixels.data.set(painted.get(id) ?? paintOf(id), at);
    }
    context.putImageData(pixels, 0, 0);
  }, [image, hidden, colours]);
  return <canvas ref={canvas} class="layer" data-layer={layer.name} />;
}

function BoxLayer({ boxes, files, layer, hidden, size }: { boxes: Boxes; files: Files; layer: Layer; hidden: ReadonlySet<string>; size: [number, number] }) {
  const colours = useObserved(theme);
  const [list, setList] = useState<Box[]>(Array.isArray(boxes) ? boxes : []);
  useEffect(() => {
    if (!Array.isArray(boxes)) get<{ box_data: Box[] }>(files.url(boxes.path)).then((file) => setList(file.box_data ?? []), () => {});
  }, [boxes]);
  const [width, height] = size;
  const letters = Math.max(width, height) / 24;
  return (
    <svg class="layer" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
      {list
        .filter((box) => !hidden.has(idOf(layer, box.class_id ?? 0)))
        .map((box) => {
          const [x, y, w, h] = placeOf(box, size);
          const colour = colourOfClass(box.class_id ?? 0, colours);
          const label = box.box_caption ?? layer.labels[String(box.class_id ?? 0)] ?? "";
          const scores = Object.entries(box.scores ?? {}).map(([score, value]) => `${score} ${value}`);
          return (
            <g>
              <rect x={x} y={y} width={w} height={h} fill={faded(colour, 0.08)} stroke={colour} vector-effect="non-scaling-stroke" stroke-width="2">
                <title>{[label, ...scores].join("\n")}</title>
              </rect>
              <text x={x + letters / 5} y={y > letters ? y - letters / 4 : y + letters} font-size={letters} fill={colour} class="box-name">
                {label}
              </text>
            </g>
          );
        })}
    </svg>
  );
}

/** Left, top, width and height in pixels. Without a domain, numbers are shares of the image. */
function placeOf({ position: at, domain }: Box, [width, height]: [number, number]): [number, number, number, number] {
  const [across, down] = domain === "pixel" ? [1, 1] : [width, height];
  if (at.middle) {
    const [w, h] = [at.width ?? 0, at.height ?? 0];
    return [(at.middle[0] - w / 2) * across, (at.middle[1] - h / 2) * down, w * across, h * down];
  }
  const [left, top] = [at.minX ?? 0, at.minY ?? 0];
  return [left * across, top * down, ((at.maxX ?? left) - left) * across, ((at.maxY ?? top) - top) * down];
}
