"""Wrong completions, written by an assistant or found in the policy's own output."""
