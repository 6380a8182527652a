// A canvas that fits its box and is painted at most once a frame.

import { useEffect, useRef, useState } from "preact/hooks";
import { theme } from "../theme";

export interface Size {
  width: number;
  height: number;
}

/** The size of an element, as it changes. */
export function useSize<T extends HTMLElement>(): [preact.RefObject<T | null>, Size] {
  const box = useRef<T>(null);
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  useEffect(() => {
    const element = box.current!;
    const look = () => setSize((old) => (old.width === element.clientWidth && old.height === element.clientHeight ? old : { width: element.clientWidth, height: element.clientHeight }));
    look();
    const watch = new ResizeObserver(look);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  return [box, size];
}

export type Paint = (ctx: CanvasRenderingContext2D, size: Size) => void;

/** Paint a canvas of that size whenever the inputs, or the colours, change. */
export function usePainted(size: Size, paint: Paint, inputs: readonly unknown[]): preact.RefObject<HTMLCanvasElement | null> {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    let frame = 0;
    const draw = () => {
      frame = 0;
      const element = canvas.current;
      if (!element || !size.width || !size.height) return;
      const ratio = devicePixelRatio;
      const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
      if (element.width !== width) element.width = width;
      if (element.height !== height) element.height = height;
      const ctx = element.getContext("2d")!;
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      ctx.clearRect(0, 0, size.width, size.height);
      paint(ctx, size);
    };
    const soon = () => (frame ||= requestAnimationFrame(draw));
    soon();
    const stop = theme.listen(soon);
    return () => {
      stop();
      cancelAnimationFrame(frame);
    };
  }, [size.width, size.height, ...inputs]);
  return canvas;
}

export function colourNamed(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
