import { render } from "preact";
import { App } from "./App";
import { followLinks } from "./router";
import { startTheme } from "./theme";
import "./style/ground.css";
import "./style/parts.css";

startTheme();
followLinks();
render(<App />, document.body);
