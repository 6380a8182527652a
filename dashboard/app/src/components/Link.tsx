// A link to another page of ours, by its path below the root.

import type { ComponentChildren } from "preact";
import { address } from "../root";

interface Props {
  to: string;
  class?: string;
  title?: string;
  tabIndex?: number;
  "aria-label"?: string;
  "aria-current"?: "page" | undefined;
  children?: ComponentChildren;
}

export function Link({ to, children, ...rest }: Props) {
  return (
    <a href={address(to)} data-page="" {...rest}>
      {children}
    </a>
  );
}
