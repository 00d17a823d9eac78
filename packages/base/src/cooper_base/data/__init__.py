"""Problems and labelled completions: records, readers, ready-made data sets, prompts."""
