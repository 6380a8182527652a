// Who can come in as this user: keys and browsers, and how to end each.

import { me } from "../App";
import { Loading } from "../components/States";
import { useObserved } from "../observe";
import { Keys } from "../settings/Keys";
import { Sessions } from "../settings/Sessions";
import "../style/sweep.css";
import "../style/settings.css";

export default function Settings() {
  const user = useObserved(me);
  if (!user) return <Loading />;
  return (
    <div class="sheet settings">
      <div class="sheet-head">
        <h1>Keys and sessions</h1>
        <span class="soft">
          of {user.name}
          {user.admin && ", who sees everybody's"}
        </span>
      </div>
      <Sessions user={user.name} />
      <Keys user={user.name} />
    </div>
  );
}
