"""Tables and charts, which the client also sends as artifacts."""

import wandb

run = wandb.init()
table = wandb.Table(columns=["name", "score"], data=[["a", 0.5], ["b", 0.25]])
run.log({"predictions": table})
run.log({"chart": wandb.plot.bar(table, "name", "score", title="scores")})
run.finish()
