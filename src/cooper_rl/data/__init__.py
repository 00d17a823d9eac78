"""Problems and labelled completions: records, readers, ready-made sets, prompts."""
