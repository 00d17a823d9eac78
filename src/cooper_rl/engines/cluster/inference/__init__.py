"""vLLM engines under Ray: the process of one (`process`), how all are called (`actors`), started and replaced
(`engines`), and how the policy's processes hand them weights (`handover`)."""
