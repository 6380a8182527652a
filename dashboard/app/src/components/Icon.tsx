// Line icons, drawn on a grid of 16.

const PATHS = {
  search: "M7 12a5 5 0 1 1 0-10 5 5 0 0 1 0 10Zm3.6-1.4L14 14",
  sun: "M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6ZM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  moon: "M13.5 9.8A6 6 0 0 1 6.2 2.5 6 6 0 1 0 13.5 9.8Z",
  help: "M6 6.2a2 2 0 1 1 2.9 1.8c-.6.3-.9.7-.9 1.5M8 12h0M8 14.5a6.5 6.5 0 1 1 0-13 6.5 6.5 0 0 1 0 13Z",
  close: "M4 4l8 8M12 4l-8 8",
  eye: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 6.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6Z",
  hidden: "M2 2l12 12M6.5 3.8A6 6 0 0 1 8 3.5c4 0 6.5 4.5 6.5 4.5a11 11 0 0 1-1.9 2.4M4 5A11 11 0 0 0 1.500 8S4 12.500 8 12.500a6 6 0 0 0 2.400-.5",
  pin: "M10 1.800 14.200 6l-1.700.6-2.600 2.600-.4 3.400-6.100-6.100 3.400-.4L9.400 3.500ZM5.500 10.500 2 14",
  more: "M3 8h0M8 8h0M13 8h0",
  tag: "M2 2h5.500L14 8.500 8.500 14 2 7.500ZM5 5h0",
  trash: "M2.500 4h11M6 4V2.500h4V4M4 4l.6 9.500h6.800L12 4M6.700 6.500v5M9.300 6.500v5",
  edit: "M2.500 13.500 3 10.500l7.800-7.800 2.500 2.500L5.500 13Z",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  filter: "M2 3h12L9.500 8.500v4l-3 1.500V8.500Z",
  columns: "M2 3h12v10H2ZM6 3v10M10 3v10",
  full: "M2.500 6V2.500H6M10 2.500h3.500V6M13.500 10v3.500H10M6 13.500H2.500V10",
  save: "M8 2v8M4.500 6.500 8 10l3.500-3.500M2.500 13.500h11",
  gear: "M2 5h7M12 5h2M9 3.500h3v3H9ZM2 11h2M7 11h7M4 9.500h3v3H4Z",
  check: "M3 8.500 6.500 12 13 4.500",
  compare: "M5 2v12M11 2v12M5 5h6M5 11h6",
  copy: "M5.500 5.500h8v8h-8ZM10.500 5.500v-3h-8v8h3",
  play: "M4 2.500 13 8l-9 5.500Z",
  chart: "M2 2v12h12M4.500 10.500 7.500 7l2.500 2 4-5",
  left: "M10 4 6 8l4 4",
  plus: "M8 3v10M3 8h10",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
