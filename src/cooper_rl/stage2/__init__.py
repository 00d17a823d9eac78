"""Stage 2: positives, negatives, the pair buffer, and the contrastive loss."""
