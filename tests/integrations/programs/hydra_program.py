import wandb
from omegaconf import OmegaConf

import hydra


@hydra.main(version_base=None, config_path=None, config_name="config")
def main(config):
    with wandb.init(config=OmegaConf.to_container(config, resolve=True)) as run:
        for step in range(5):
            run.log({"loss": config.lr / (step + 1)})


hydra.core.config_store.ConfigStore.instance().store("config", {"lr": 0.1, "model": {"depth": 3}})
main()
