// Teams that somebody asks the visitor into: joining is the visitor's own decision.

import { me } from "../App";
import { del, put } from "../api";
import { useObserved } from "../observe";
import { attempt } from "./Toasts";

export function Invitations() {
  const user = useObserved(me);
  if (!user?.invitations.length) return null;

  async function decide(team: string, joins: boolean): Promise<void> {
    const path = `api/teams/${encodeURIComponent(team)}/members/${encodeURIComponent(user!.name)}`;
    if ((await attempt<unknown>(joins ? put(path, {}) : del(path))) === null) return;
    // Everything on the page may have changed with the team's runs.
    if (joins) location.reload();
    else me.set({ ...user!, invitations: user!.invitations.filter((invitation) => invitation.team !== team) });
  }

  return (
    <ul class="invitations" aria-label="Invitations">
      {user.invitations.map(({ team, invited_by }) => (
        <li key={team} class="row">
          <span>
            <b>{invited_by}</b> invites you to the team <b>{team}</b>
          </span>
          <button class="primary" onClick={() => void decide(team, true)}>
            Join
          </button>
          <button onClick={() => void decide(team, false)}>Decline</button>
        </li>
      ))}
    </ul>
  );
}
