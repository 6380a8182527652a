import stable_baselines3
import wandb
from wandb.integration.sb3 import WandbCallback

run = wandb.init(config={"policy": "MlpPolicy"}, sync_tensorboard=True)
model = stable_baselines3.PPO(
    "MlpPolicy", "CartPole-v1", n_steps=64, batch_size=64, n_epochs=1, device="cpu",
    tensorboard_log=f"runs/{run.id}",
)  # fmt: skip
model.learn(512, callback=WandbCallback(model_save_path="models"))
run.finish()
