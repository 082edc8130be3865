"""The paper's own numbers ("Scalable Kernel Inverse Optimization", NeurIPS 2024).

Scores are D4RL's normalised returns. Every table here has the names of the paper's columns.
"""

SIX = [
    "hopper-expert",
    "hopper-medium",
    "walker2d-expert",
    "walker2d-medium",
    "halfcheetah-expert",
    "halfcheetah-medium",
]
THREE = ["hopper-medium-expert", "walker2d-medium-expert", "halfcheetah-medium-expert"]

# KIO, IO, BC (TD3+BC), BC (CQL), teacher; the cloning agents learned from a million rows.
TABLE_1 = {
    "hopper-expert": (109.9, 31.8, 111.5, 109.0, 108.5),
    "hopper-medium": (50.2, 20.6, 30.0, 29.0, 47.2),
    "walker2d-expert": (108.5, 0.9, 56.0, 125.7, 107.1),
    "walker2d-medium": (74.6, 0.0, 11.4, 6.6, 68.1),
    "halfcheetah-expert": (84.4, -1.7, 105.2, 107.0, 88.1),
    "halfcheetah-medium": (39.0, -3.1, 36.6, 36.1, 40.7),
}

# Objective by SCS, its score, objective after 20 blocks of SSO, the best of its 20 scores.
TABLE_2 = {
    "hopper-expert": (185.219, 109.9, 185.220, 110.2),
    "hopper-medium": (218.761, 50.2, 218.761, 51.8),
    "walker2d-expert": (140.121, 108.5, 140.121, 109.2),
    "walker2d-medium": (151.117, 74.6, 151.117, 74.9),
    "halfcheetah-expert": (165.041, 84.4, 165.041, 83.8),
    "halfcheetah-medium": (188.184, 39.0, 188.184, 39.7),
}

# KIO, BC (TD3+BC), BC (CQL), teacher, with 100,000 rows.
TABLE_3 = {
    "hopper-medium-expert": (79.6, 89.6, 111.9, 64.8),
    "walker2d-medium-expert": (100.1, 12.0, 11.3, 82.7),
    "halfcheetah-medium-expert": (46.4, 67.6, 35.8, 64.4),
}

# Appendix C, mean and spread of 100 episodes: rbf, laplace, linear.
APPENDIX_C = {
    "hopper-medium": ((51, 6.4), (41, 5.1), (24, 0.05)),
    "hopper-expert": ((109.9, 0.4), (71, 26.7), (28, 0.5)),
    "walker2d-medium": ((72, 14), (43, 28.2), (-0.19, 0.006)),
    "walker2d-expert": ((109.1, 0.3), (103.1, 22.6), (-0.02, 0.1)),
    "halfcheetah-medium": ((32.4, 12.2), (52, 10.5), (-0.8, 0.6)),
    "halfcheetah-expert": ((78.8, 24.9), (59.1, 35.5), (2.0, 3.1)),
}

# The rows of D4RL's files that the paper trained on (appendix B); of medium-expert files the first
# and the last 50,000.
ROWS = {
    "hopper-expert": [(0, 5000)],
    "hopper-medium": [(0, 5000)],
    "walker2d-expert": [(0, 5000), (10_000, 15_000)],
    "walker2d-medium": [(15_000, 20_000)],
    "halfcheetah-expert": [(325_000, 330_000), (345_000, 350_000)],
    "halfcheetah-medium": [(10_000, 15_000)],
}

# The paper multiplies its objective by `scalar`/N (appendix B).
OBJECTIVE_SCALE = {"hopper": 200.0, "walker2d": 50.0, "halfcheetah": 50.0}
