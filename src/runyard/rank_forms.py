"""How the processes of one program over several nodes are started: `distributed` in runyard.yaml.

On the ground floor: settings, the plan of a job and the nodes must agree.
"""

from __future__ import annotations

# The command as it is, once for each process.
PLAIN = "srun"
RANK_FORMS = ("lightning", "torchrun", PLAIN, "mpi", "accelerate")
# Started once a node: these start the node's processes themselves.
ONE_A_NODE = ("torchrun", "accelerate")
