"""Q-learning in a small grid world with wind: a reinforcement-learning run of a few seconds.

python q_learning.py --alpha 0.3 --epsilon 0.1 --seed 1
"""

import argparse
import random

import wandb

WIDTH, HEIGHT = 8, 5
START, GOAL = (0, 2), (7, 2)
WIND = (0, 0, 0, 1, 1, 1, 0, 0)  # Upwards, by column.
MOVES = ((1, 0), (-1, 0), (0, 1), (0, -1))
LONGEST = 400


def step(place: tuple[int, int], move: int, rng: random.Random) -> tuple[int, int]:
    x, y = place
    gust = WIND[x] if rng.random() < 0.7 else 0
    x += MOVES[move][0]
    y += MOVES[move][1] + gust
    return min(max(x, 0), WIDTH - 1), min(max(y, 0), HEIGHT - 1)


def episode(table: dict, args: argparse.Namespace, rng: random.Random) -> int:
    """Steps to the goal, learning on the way."""
    place = START
    for count in range(1, LONGEST + 1):
        values = table.setdefault(place, [0.0] * len(MOVES))
        greedy = values.index(max(values))
        move = rng.randrange(len(MOVES)) if rng.random() < args.epsilon else greedy
        then = step(place, move, rng)
        reward = 0.0 if then == GOAL else -1.0
        ahead = 0.0 if then == GOAL else max(table.setdefault(then, [0.0] * len(MOVES)))
        values[move] += args.alpha * (reward + args.gamma * ahead - values[move])
        if then == GOAL:
            return count
        place = then
    return LONGEST


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alpha", type=float, default=0.3, help="how fast it learns")
    parser.add_argument("--epsilon", type=float, default=0.1, help="how often it tries at random")
    parser.add_argument("--gamma", type=float, default=0.98)
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    rng = random.Random(args.seed)
    table: dict[tuple[int, int], list[float]] = {}
    run = wandb.init(project="gridworld", config=vars(args))
    recent: list[int] = []
    for number in range(args.episodes):
        recent = [*recent[-49:], episode(table, args, rng)]
        run.log({"steps": recent[-1], "mean_steps": sum(recent) / len(recent), "episode": number})
    run.finish()


if __name__ == "__main__":
    main()
