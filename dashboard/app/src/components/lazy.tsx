// A component whose code is loaded when it is first shown.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Failure, Loading } from "./States";

export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null;
  return function Lazy(props: Props) {
    const [state, setState] = useState<"waiting" | "there" | "failed">(loaded ? "there" : "waiting");
    const begin = () => {
      setState("waiting");
      load().then(
        (component) => {
          loaded = component;
          setState("there");
        },
        () => setState("failed"),
      );
    };
    useEffect(() => {
      if (!loaded) begin();
    }, []);
    if (state === "failed") return <Failure what="A part of the page could not be loaded." next="The server may be away, or newer than this page." again={begin} />;
    return loaded ? ((Component) => <Component {...props} />)(loaded) : <Loading />;
  };
}
