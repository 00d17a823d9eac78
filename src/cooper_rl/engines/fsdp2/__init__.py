"""Learners whose model is sharded over several processes (PyTorch's FSDP2); they run in any process group."""
