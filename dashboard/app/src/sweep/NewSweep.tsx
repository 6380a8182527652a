// A sweep made of a file that is pasted here.

import { useState } from "preact/hooks";
import { ApiError, post } from "../api";
import { Dialog } from "../components/Dialog";
import { pathOf } from "../root";
import { navigate } from "../router";
import type { Sweep } from "./data";

const EXAMPLE = `program: train.py
method: bayes
metric:
  name: val_loss
  goal: minimize
run_cap: 50
parameters:
  lr:
    distribution: log_uniform_values
    min: 1e-5
    max: 1e-1
  optimizer:
    values: [adam, sgd]
`;

export function NewSweep({ entity, project, close }: { entity: string; project: string; close: () => void }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const create = async () => {
    setBusy(true);
    setProblem("");
    try {
      const made = await post<Sweep>("api/sweeps", { config: text, entity, project });
      navigate(pathOf(entity, project, "sweeps", made.id));
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : String(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title="New sweep" close={close}>
      <form
        class="new-sweep"
        onSubmit={(event) => {
          event.preventDefault();
          void create();
        }}
      >
        <label>
          The sweep's file, as for W&B
          <textarea rows={16} spellcheck={false} value={text} placeholder={EXAMPLE} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        {problem && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <div class="row dialog-end">
          <button type="button" onClick={() => setText(EXAMPLE)}>
            Begin with an example
          </button>
          <button class="primary" disabled={busy || !text.trim()}>
            Make the sweep
          </button>
        </div>
      </form>
    </Dialog>
  );
}
