"""The nine tasks: their worlds, teachers, sizes, and how far their data is the paper's own."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Task:
    """A dataset of the paper: its world, how many rows were learned from, who can make more."""

    name: str
    rows: int
    teachers: tuple  # files under teachers/, without their ending; medium first
    file: str | None  # under the data folder; none is rolled out from the teachers
    stands_in: str  # what the file or the rollouts are, where they are not D4RL's own
    genuine: bool = False
    expert_file: str | None = None  # the second half, where it is not rolled out

    @property
    def world(self):
        return self.name.split("-")[0]

    @property
    def preset(self):
        """The paper's settings for it."""
        return self.name.removesuffix("-genuine")

    @property
    def kind(self):
        return self.name.split("-", 1)[1]


AGAIN = "stands in: D4RL's own medium policy, rolled out again"
TASKS = {
    task.name: task
    for task in [
        Task("hopper-expert", 5000, ("hopper-sb3-tqc",), "d4rl/hopper-expert-v2-subset.npz",
             "genuine: D4RL hopper-expert-v2, its first 24,155 rows", genuine=True),
        Task("hopper-medium", 5000, ("hopper-d4rl-medium-v2",), "rollouts/hopper-medium.npz", AGAIN),
        Task("walker2d-expert", 10_000, ("walker2d-sb3-tqc",), "rollouts/walker2d-expert.npz",
             "stands in: another expert (zoo TQC), score 92"),
        Task("walker2d-medium", 5000, ("walker2d-d4rl-medium-v2",), "rollouts/walker2d-medium.npz",
             AGAIN),
        Task("halfcheetah-expert", 10_000, ("halfcheetah-dope-10",),
             "rollouts/halfcheetah-expert.npz",
             "stands in: another expert (SAC), stronger and noisier, score 105"),
        Task("halfcheetah-medium", 5000, ("halfcheetah-d4rl-medium-v2",),
             "rollouts/halfcheetah-medium.npz", AGAIN),
        Task("hopper-medium-expert", 100_000, ("hopper-d4rl-medium-v2", "hopper-sb3-tqc"), None,
             "stands in: D4RL's medium policy and another expert, rolled out"),
        Task("walker2d-medium-expert", 100_000, ("walker2d-d4rl-medium-v2", "walker2d-sb3-tqc"),
             None, "stands in: D4RL's medium policy and another expert, rolled out"),
        Task("halfcheetah-medium-expert", 100_000,
             ("halfcheetah-d4rl-medium-v2", "halfcheetah-dope-10"), None,
             "stands in: D4RL's medium policy and another expert, rolled out"),
        # No task of the paper: are the stand-in experts why medium-expert falls short here?
        Task("hopper-medium-expert-genuine", 40_000, ("hopper-d4rl-medium-v2", "hopper-sb3-tqc"),
             None, "half genuine: D4RL's medium policy rolled out, then D4RL's expert rows",
             expert_file="d4rl/hopper-expert-v2-subset.npz"),
    ]
}
