"""Tests run in parallel processes: one tensor thread each, or they spin against each other."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["HF_HUB_OFFLINE"] = "1"

import torch

torch.set_num_threads(1)
