"""Problems with reference answers: reading them, and checking each reference with the rule."""
