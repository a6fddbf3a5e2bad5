"""Gates: a measure, a comparison and a target decide, with evidence, whether retrieval got worse."""
