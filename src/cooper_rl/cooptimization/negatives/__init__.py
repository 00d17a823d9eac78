"""Wrong completions: written by an assistant, or caught in the policy's own output."""
