"""Problems: the record, readers, ready-made data sets, row validation, and the embedded arithmetic world."""
