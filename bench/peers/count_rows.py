"""How many rows a data file has.

    count_rows.py DATA.npz
"""

import json
import sys

import numpy as np


def main():
    print(json.dumps({"n_rows": len(np.load(sys.argv[1])["actions"])}))


if __name__ == "__main__":
    main()
