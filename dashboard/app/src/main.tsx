import { render } from "preact";
import { App } from "./App";
import { parts } from "./root";
import { followLinks } from "./router";
import { findRoute } from "./routes";
import { startTheme } from "./theme";
import "./style/ground.css";
import "./style/frame.css";
import "./style/windows.css";
import "./style/parts.css";
import "./style/sheets.css";

// The page's own part is on its way while the frame is put up.
void findRoute(parts(location.pathname))?.load().catch(() => {});
startTheme();
followLinks();
render(<App />, document.body);
