"""Research on `cooper_rl`: its embedded world, arena, designs, planner and reward-model benchmarks."""
